"""The desk of a small library: five tools over one object. Every rollout gets an object of its own."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass
class LibraryDesk:
    """`books`: id -> title; `loans`: id -> member; `holds`: id -> members who wait. All three are public state."""

    books: dict[str, str]
    loans: dict[str, str] = field(default_factory=dict)
    holds: dict[str, list[str]] = field(default_factory=dict)
    cards: dict[str, str] = field(default_factory=dict)

    def find_book(self, title: str) -> dict:
        """Find a book by its title.

        Args:
            title: The full title, as printed.
        """
        book = next((key for key, name in self.books.items() if name.casefold() == title.casefold()), None)
        if book is None:
            raise LookupError(f"no book called {title}")
        return {"book": book, "on_loan": book in self.loans, "waiting": len(self.holds.get(book, []))}

    def borrow(self, book: str, member: str) -> str:
        """Lend a book to a member.

        Args:
            book: The book's id, such as B1.
            member: The member's name.
        """
        self._known(book)
        if book in self.loans:
            raise RuntimeError(f"{book} is already on loan")
        if (queue := self.holds.get(book)) and queue[0] != member:
            raise PermissionError(f"{book} is kept for {queue[0]}")
        if queue:
            queue.pop(0)
        self.loans[book] = member
        return f"{book} lent to {member}"

    def give_back(self, book: str, condition: Literal["good", "worn", "damaged"] = "good") -> str:
        """Take a book back from whoever has it.

        Args:
            book: The book's id.
            condition: What it looks like; a damaged book leaves the shelves.
        """
        self._known(book)
        if book not in self.loans:
            raise RuntimeError(f"{book} is not on loan, borrow it first")
        del self.loans[book]
        if condition == "damaged":
            del self.books[book]
        return f"{book} is back, {condition}"

    def hold(self, book: str, member: str) -> int:
        """Put a member on the waiting list of a book that is on loan. Tells the place in the list.

        Args:
            book: The book's id.
            member: The member's name.
        """
        self._known(book)
        if book not in self.loans:
            raise RuntimeError(f"{book} is not on loan, borrow it instead")
        queue = self.holds.setdefault(book, [])
        queue.append(member)
        return len(queue)

    def extend(self, book: str, weeks: int) -> str:
        """Extend a loan by one to four weeks, unless somebody waits.

        Args:
            book: The book's id.
            weeks: How many weeks, 1 to 4.
        """
        self._known(book)
        if not 1 <= weeks <= 4:
            raise ValueError("weeks must be 1 to 4")
        if book not in self.loans or self.holds.get(book):
            raise RuntimeError(f"{book} can not be extended, it is not on loan or somebody waits")
        self.cards[book] = f"+{weeks} weeks"
        return f"{book} extended by {weeks} weeks"

    def _known(self, book: str) -> None:
        if book not in self.books:
            raise LookupError(f"no book {book}")


def found_a_free_book(played) -> bool:
    """A checker: the user got told of some book that is not on loan, and nothing was changed."""
    free = any('"on_loan": false' in result.raw for result in played.results if not result.error_kind)
    return free and played.state == played.before
