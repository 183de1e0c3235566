"""One round: its state, its phases, and how a state becomes the files of a round's folder and back."""
