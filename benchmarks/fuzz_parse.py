"""Fuzzing of call parsing: `python benchmarks/fuzz_parse.py [--outputs 1_000_000] [--seed 0] [--state FILE]`.

Outputs of policies (BFCL's reference calls and the tests' hostile texts, written in every format) are mutated one to
eight times and parsed in their own format in both modes and in one other format. Each parse must return (no crash),
within a second (no hang), running nothing (an audit hook sees every import, exec, file, process and socket), with calls
and errors that JSON holds. An output is a function of the seed and its number. With --state a run goes on where it was
interrupted. Exit code 1 when anything was found; each finding is printed with what reproduces it.
"""

import argparse
import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from seal.env import load_env
from seal.tools.parse import READERS, format_calls, parse

SLOW = 1.0  # seconds
STUCK = 10.0  # seconds after which a parse is broken off
BLOCK = 10_000  # outputs between two lines of progress
MODES = ("strict", "lenient")
SCHEMA = {"add": ["a", "b"], "sort": {"file_name": "string"}, "f": {"n": "integer", "x": "number", "b": "boolean"}}
HARMLESS = frozenset(("compile", "object.__getattr__", "sys._getframe"))  # a syntax tree is read, nothing is run

HOSTILE = (
    "[add(a=__import__('os').system('touch x')+1, b=2)]",
    "[add(**{'a': open('f', 'w').write('x')})]",
    '<tool_call>{"name": "__import__(\'os\').system(\'x\') or add", "arguments": {}}</tool_call>',
    "[power(base=9**9**9, exponent=20000000)]",
    "[f(a=(lambda: __import__('sys').exit())())]",
    "I will call [ls(a=true, b=null)] for you. Done (see above).",
    "<think>[rm(file_name='a')]</think>\n[ls()]",
    '{"name": "f", "parameters": {"n": 1e999, "x": NaN}}; {"name": "f"}',
    '{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\\"n\\": 1}"}}]}',
    "f n=3 x=nan b=true ; add a=1 b= ; done",
    "ls()\npwd()\ncd(folder='..')",
    "[f(a=f'{__import__}', b=b'x', c=1j, d=..., e={1, 2}, g=0x" + "f" * 5000 + ")]",
)
PIECES = (
    *"[ ] ( ) { } , : ; = ' \" \\ / < > - + * ** . # @ % ` ~ \n \r \t \0 é ﬁ \ud800 \u202e".split(" "),
    *"<tool_call> </tool_call> <|python_tag|> <|eot_id|> </think> ``` ''' \"\"\" lambda: f' b'".split(),
    *"None True true null nan 1e999 -0 0x1f 9j __import__('os')".split(),
    *('"name": ', '"arguments": {', '"parameters": ', "\\u003c", "\\ud83d", "\\N{BELL}", " ; done"),
    *("[f(", "{'a':", ")]", "9" * 300),
)


class Stuck(BaseException):
    """A parse that did not end."""


def seeds() -> list[tuple[str, str]]:
    """`(text, format)` of what is mutated: the reference turns of BFCL's base tasks, and hostile texts."""
    turns = [turn.gold for task in load_env("bfcl").tasks() if task.category == "base" for turn in task.turns]
    written = [(format_calls(calls, format), format) for calls in turns for format in sorted(READERS)]
    return written + [(text, format) for text in HOSTILE for format in sorted(READERS)] * 20


def mutated(rng: random.Random, text: str, other: str) -> str:
    for _ in range(rng.randint(1, 8)):
        text = _mutation(rng, text, other)
    return text[:120_000]


def _mutation(rng: random.Random, text: str, other: str) -> str:
    at = rng.randint(0, len(text))
    to = min(len(text), at + rng.choice((1, 1, 2, 5, 20, 100)))
    match rng.randrange(10):
        case 0:
            return text[:at] + text[to:]
        case 1 | 2:
            return text[:at] + rng.choice(PIECES) + text[at:]
        case 3:
            return text[:at] + rng.choice(PIECES) + text[to:]
        case 4:
            return text[:at] + text[at:to] * rng.choice((2, 3, 30)) + text[to:]
        case 5:
            return text[:at]
        case 6:
            return text[:at] + other[rng.randint(0, len(other)) :]
        case 7:
            return text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x110000)))) + text[to:]
        case 8:
            return rng.choice(("(", "[", "{", '{"a":', "[f(a=")) * rng.choice((1, 3, 30)) + text
        case _ if rng.random() < 0.02:
            return text + rng.choice(PIECES) * rng.choice((300, 3000, 30_000))
    return text[to:] + text[:to]


def check(text: str, format: str, mode: str) -> str:
    """What is wrong with parsing this; "" for nothing."""
    signal.setitimer(signal.ITIMER_REAL, STUCK)
    try:
        parsed = parse(text, format, SCHEMA, mode)
    except Stuck:
        return f"stuck for {STUCK} s"
    except Exception as error:  # whatever it is, it is the finding
        return f"raised {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        calls = [[call.name, dict(call.arguments)] for call in parsed.calls]
        told = [[error.kind, error.message] for error in parsed.errors]
        json.dumps([calls, told], allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return f"no JSON: {error}"
    if parsed.end_of_turn and parsed.calls or not (parsed.calls or parsed.errors or parsed.end_of_turn):
        return "neither calls, errors nor an end of turn"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="file that keeps how far the run is; another seed needs another")
    args = parser.parse_args()
    state = {"seed": args.seed, "next": 0, "parses": 0, "seconds": 0.0, "slowest": 0.0, "kinds": {}, "found": []}
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text())
        if state["seed"] != args.seed:
            parser.error(f"{args.state} is of seed {state['seed']}")
    run(args.outputs, state, args.state)
    report = {key: value for key, value in state.items() if key not in ("found", "next")}
    print(json.dumps(report | {"outputs": state["next"], "findings": len(state["found"])}))
    print(f"{state['parses'] / max(state['seconds'], 1e-9):.0f} parses/s")
    return 1 if state["found"] else 0


def run(outputs: int, state: dict, file: Path | None) -> None:
    signal.signal(signal.SIGALRM, _stop)
    texts, events, kinds = seeds(), [], Counter(state["kinds"])
    parse("[ﬁ()]", "pythonic")  # what Python loads to read such a name loads now
    watching = [False]
    sys.addaudithook(lambda event, _: events.append(event) if watching[0] and event not in HARMLESS else None)
    formats = sorted(READERS)
    while state["next"] < outputs:
        number = state["next"]
        rng = random.Random(f"{state['seed']}/{number}")
        source, format = rng.choice(texts)
        text = mutated(rng, source, rng.choice(texts)[0])
        for target, mode in ((format, "strict"), (format, "lenient"), (rng.choice(formats), rng.choice(MODES))):
            watching[0], started = True, time.perf_counter()
            wrong = check(text, target, mode)
            spent, watching[0] = time.perf_counter() - started, False
            if events or spent > SLOW:
                wrong = wrong or (f"ran {sorted(set(events))}" if events else f"took {spent:.1f} s")
                events.clear()
            if wrong:
                finding = {"output": number, "format": target, "mode": mode, "wrong": wrong, "text": repr(text)[:400]}
                state["found"].append(finding)
                print(json.dumps(finding), flush=True)
            kinds[f"{target}/{mode}"] += 1
            state["parses"] += 1
            state["seconds"] += spent
            state["slowest"] = max(state["slowest"], spent)
        state["next"] += 1
        if state["next"] % BLOCK == 0 or state["next"] == outputs:
            state["kinds"] = dict(kinds)
            if file:
                file.write_text(json.dumps(state))
            rate = state["parses"] / state["seconds"]
            print(f"{state['next']:>9} outputs  {rate:.0f} parses/s  slowest {state['slowest']:.3f} s", flush=True)


def _stop(signum, frame):
    raise Stuck


if __name__ == "__main__":
    sys.exit(main())
