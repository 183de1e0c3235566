"""Error or not, and of which kind, read from a tool result alone: for logs whose executor did not say.

What a result says outright counts first: is_error, success, ok, status, error, HTTP and exit codes (`flagged`). Then
its words, of which only the first and the last line are heard: what is longer is data that mentions errors. No pattern
sees more than a window of the text, so that a result of any length takes no longer than its JSON.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from seal.core.types import Json

MAX_LITERAL = 20_000  # characters of a Python literal that are looked into; JSON of any length is
_WINDOW = 400  # characters of a line that are heard
_SHORT = 1000  # a longer text is heard by what it begins with alone
_ERROR_KEYS = frozenset(("error", "errors", "exception", "err", "errormessage", "errormsg", "errmsg"))
_MESSAGES = ("message", "msg", "detail", "details", "reason", "response", "result", "output", "content", "text")
_WORKED, _FAILED = frozenset(("success", "ok", "succeeded", "successful")), frozenset(("iserror", "failed", "haserror"))
_STATUS = frozenset(("status", "outcome", "result"))
_STATUS_GOOD = frozenset(("ok", "success", "succeeded", "successful"))
_STATUS_BAD = frozenset(
    ("error", "failed", "failure", "fail", "denied", "rejected", "timeout", "timed_out", "exception")
)
_HTTP = frozenset(("status", "statuscode", "httpstatus", "httpcode", "httpstatuscode", "code"))
_EXIT = frozenset(("exitcode", "exitstatus", "returncode"))
# What a Python literal that is looked into holds: most hold none of it.
_FLAG = re.compile("err|exception|traceback|succe|ok|fail|outcome|result|status|code|message|msg|detail", re.IGNORECASE)
# A key with nothing to complain of is none, nor is a measure.
_NOTHING = r"""['"]\s{0,9}:\s{0,9}(?:none|null|false|0(?:\.0+)?|''|""|\{\s{0,9}\}|\[\s{0,9}\])\s{0,9}(?:[,}]|$)"""
_NONE = r"(?!:?\s{0,9}(?:[-+]?\d*(?:[.,]\d+\s?%?|\s?%)\s{0,9}$|none\b|null\b|no\b|0\b|false\b|nothing\b))"
_REASONS = (
    r"(?:bad request|unauthorized|payment required|forbidden|not found|method not allowed|not acceptable|conflict|gone"
    r"|unprocessable|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out"
    r"|client error|server error)"
)
# What an error begins with, behind a few signs.
_ERROR_ALONE = (
    rf"(?:error|errors(?=['\"])|exception|traceback)\b(?!{_NOTHING}){_NONE}"
    r"(?! (?:handling|logging|tracking|reporting|monitoring|checking)\b)"
    r"(?=\W{0,9}$|[^\w\s]|\s\W|\s[\w'\"-]+ing\b|\s(?:in|during|while|when|at|on|code|from|occurred|calling"
    r"|refused|missing"
    r"|unexpected|unknown|not|no|invalid|\d))"
)
_REFUSED = r"denied|forbidden|unauthori[sz]ed|unauthenticated|rejected|refused|time(?:d )?out|cancell?ed"
_BEGINNINGS = (
    _ERROR_ALONE,
    rf"(?:[\w/.()'\"-]{{1,40}} ){{0,4}}(?:error|exception|failure)"
    rf"(?: \(?-?(?:\d|[EHC](?-i:[A-Z\d_])|code)[-\w. ]{{0,20}}\)?)?:{_NONE}",
    r"(?-i:(?:\w{1,40}\.){0,6}\w{0,60}(?:Error|Exception|Interrupt|Failure))(?:\(['\"]|:(?!\s{0,9}[-+.\d]+\s{0,9}$)|$)",
    r"(?:an?|some|the following|unexpected|i encountered an|there was an|got an|encountered an) (?:\w{1,20} ){0,2}"
    r"(?:error|exception)(?:\W{0,3}$|:| occurred| was| while| in| during| when| with)",
    r"(?:(?:an?|the) )?(?:permission|syntax|validation|type|value|pars(?:e|ing)|network|connection|internal"
    r"|runtime|tool"
    r"|api|execution|database|query|import|key|auth\w*|request|unexpected|unknown|critical|fatal) (?:error|exception)",
    r"fail(?:ed|ure)?(?: to\b| with\b| due\b|[:.!]|\s{0,9}$)|fatal:|panic:|abort(?:ed|ing)\b",
    r"(?:cannot|can't|could(?:n't| not)|unable to)\b",
    r"(?:unknown|unrecogni[sz]ed|unsupported|invalid|illegal|malformed|undefined) [\w'\"`./-]",
    r"(?:unexpected|missing|incorrect|wrong|duplicate|ambiguous|not enough|too (?:many|few)|insufficient) ['\"\w]",
    r"(?:kindly|specify|ran into|pass (?:either|an?)|please (?!find|note|see)) \w",
    r"(?:provide|enter|add|choose) (?:an?|\w+ id) \w",
    r"received (?:an? )?(?:invalid|no|unexpected) \w|no such\b|no (?:tool|function|command|action|available) ",
    r"no (?:\w{1,30} ){1,4}(?:named|called|with (?:the )?(?:id|name|key)|provided|specified|selected|supplied|open)\b",
    r"no (?:\w{1,30} ){0,2}(?:data|response|reply|body|permission|access|connection)\b",
    rf"(?:{_REFUSED})(?:\b\W|$)|rate limit|quota exceeded|server error|bad (?:request|gateway)|service unavailable",
    rf"(?:http(?:/\d(?:\.\d)?)?|status(?: code)?:?) ?[45]\d\d\b|[45]\d\d\b\W{{1,3}}{_REASONS}|internal server error",
    r"not (?:found|allowed|authori[sz]ed|permitted|supported|implemented|available|enough|logged in)\b",
    r"connection (?:refused|reset|error|failed|aborted|closed|timed)|<?tool_use_error",
    r"[\w.]{1,60}: (?:bad|invalid|no|cannot|could not|not|missing|failed|unknown|unable)\b",
)
_BEGINS = re.compile(rf"^[\s\W]{{0,9}}[❌✗✘⛔]|^\W{{0,30}}(?:{'|'.join(_BEGINNINGS)})", re.IGNORECASE)
# What the first line of a short text says anywhere, unless it is said of something else.
_SAYINGS = (
    r"(?:was|were|is|are|be|could) not (?:be )?found",
    r"not found(?=[^\w\s]|\s{0,9}$| \(| (?:in|on|for|at|or|with|as)\b)",
    r"(?:was|were|is|has|have)(?:n't| not) (?:been )?(?:executed|sent|run|applied|saved|performed|able|processed"
    r"|completed"
    r"|updated|created|connected|initiali[sz]ed|configured|installed|accessible|allowed)\b",
    r"(?:is|are|was|were|does|do|did)(?: not|n't) (?:(?:currently|yet) )?(?:an?|in|of|one|part|accept\w*|config\w+"
    r"|read-only|contain|appear|belong|correspond|fit|reachable|writable|readable|unique|available|loaded|set)\b",
    r"(?:do|does|did)(?: not|n't) (?:exist|have|match|support)|is none\b|neither \w.{1,80} nor\b",
    r"not (?:yet )?(?:an? )?(?:valid|recogni[sz]ed|allowed|permitted|approved|authori[sz]ed|supported|implemented)",
    r"not (?:registered|defined|available|of type|(?:in|within|inside) (?:the |your )?(?:workspace|allow|range|scope))",
    r"(?:is|are) (?:malformed|forbidden|mandatory|out of)\b|required\b|invalid\b|missing\b|unsupported\b",
    r"aborting\b|must\b",
    r"should (?:not )?(?:be|have|contain|provide|match|start|include)\b",
    r"requires? (?:an?|at least|exactly|either|one|the)\b",
    r"timed out|time-?out (?:after|exceeded|of)",
    r"(?:permission|access|request|operation) (?:was )?(?:denied|refused|aborted)",
    r"no such (?:file|tool|function|table|column|command|user)|already exists|too many requests|rate limit",
    r"(?<=[\w'\")] )failed(?: with| to|:|\.|!|$)|exited (?:prematurely|unexpectedly)|validation errors?\b",
    r"exceeds\b|(?:exceeded|reached) (?:the|its|your|maximum)\b|(?:limit|quota) (?:was |has been )?exceeded",
    r"too (?:large|long|short|big|small|many|few)\b|out of (?:range|bounds)",
    r"outside (?:of )?(?:the )?(?:\w+ )?(?:allowed|range)",
    r"an (?:\w{1,20} )?error(?:\W{0,3}$|:)|error occurred|\. error:",
    r"(?<=\w )error (?!handl|logg|track|report|monitor)[a-z]{3,20}ing\b",
    r"contain(?:s|ed) \w{1,20} errors?\b",
    r"(?:returned|raised|threw|got) an? (?:\w{1,20} )?(?:error|exception)",
    r"returned (?:nothing|no (?:result|output|data))\b",
    r"can ?not (?!only)\w|can't \w|could(?:n't| not) (?:be|find|open|read|parse|connect)",
    r"can only (?:be|contain|have)\b",
    r"(?:supports?|accepts?|allows?|takes?) (?:only|exactly|at most)\b|only the .{1,40} can be|\w conflicts? with\b",
    r"connection (?:was )?(?:refused|reset|aborted)|unexpected keyword|insufficient (?:funds|balance|perm|privil)",
    r"(?:status|error) code:? ?[45]\d\d|[45]\d\d (?:client|server) error|status [45]\d\d\b",
    r"(?:was|is|been) (?:denied|rejected|blocked|refused|interrupted|killed|unavailable)",
    r"(?:denied|rejected|cancell?ed|declined|blocked|interrupted) (?:by|because|due)\b",
    r"user (?:has )?(?:denied|rejected|declined|refused|cancell?ed)\b|(?:token|session|key|link) (?:has |is )?expired",
    r"(?:search|request|operation|command|execution|tool|task|call) (?:was|has been) cancell?ed|no replacement",
    r"(?:path|it|file|target|source|this) is a (?:directory|folder|file)\b|usage: [\w./-]{1,60} [<\[-]",
    r"expected .{1,60}(?:,| but) (?:got|received|found)\b|please (?:try again|provide|specify|retry|fix|check)\b",
    r"(?:parameter|argument|field|value|query|path|content|input) (?:was|is) (?:empty|null|blank|incorrect|wrong)",
)
_SAYS = re.compile(rf"\b(?:{'|'.join(_SAYINGS)})", re.IGNORECASE)
_SHELL = re.compile(r"^[\w./-]{1,60}: .+")  # cat: a: No such file
_OF_ELSE = re.compile(
    r"\b(?:no|not|without|0|zero|never|if|when|unless|whether|how|why|what|which|returns?|raises?|throws?|throw"
    r"|except|catch"
    r"|def|log(?:ged|ger|s)?|print|once|should|truncated)\b",
    re.IGNORECASE,
)
_EXITED = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: non-?zero)?(?: (?:exit )?(?:code|status))?|exit_?code|return_?code"
    r"|returned non-zero exit status)"
    r"['\">:= (]{1,4}(?!0\b)-?\d{1,10}\b",
    re.IGNORECASE,
)
_TRACE = "Traceback (most recent call last)"
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            "unknown_tool",
            r"name '\w{1,200}' is not defined|unknown (tool|function|action)|no such (tool|function)|not a valid tool"
            r"|\bno (tool|function) (named|called|with)|\b(tool|function|action) ['\"`]?[\w./-]{0,80}['\"`]? ?"
            r"(is |was )?(not found|not available|not registered|do(es)?(n't| not) exist)|tool not found",
        ),
        (
            "missing_argument",
            r"missing\b.{0,120}(argument|parameter|field|propert)|(argument|parameter|field|property)\b.{0,120}\brequired"
            r"|^error missing|field required|required propert",
        ),
        (
            "unexpected_argument",
            r"unexpected\b.{0,120}(argument|parameter|field)|additional propert|^error unexpected|extra inputs are",
        ),
        (
            "wrong_type",
            r"not supported between|invalid type|type ?error|must be (an? )?(str|int|float|num|bool|list|array|obj)"
            r"|should be a valid (str|int|num|bool|list|dict)|is not of type",
        ),
        ("timeout", r"time[d -]?\s?out|deadline exceeded"),
        (
            "permission",
            r"permission|denied|unauthori[sz]ed|forbidden|not authenticated|log(ged)? ?in\b"
            r"|invalid.{0,120} token|token (expired|not)|\b40[13]\b",
        ),
        ("not_found", r"not found|no such|not registered|does(n't| not) exist|\b404\b"),
        (
            "precondition",
            r"\b(first|before|already|refused|closed|exists|insufficient)\b"
            r"|\bnot (yet|open|active|started|pending|running)\b",
        ),
        ("invalid_value", r"invalid|must be|not (a )?valid|out of range|allowed values|one of"),
    )
)
_NAMED = re.compile(
    r"\b(?:arguments?|parameters?|params?|fields?|propert(?:y|ies)|keys?)\b[\s:(]{1,4}['\"`]?([A-Za-z_$][\w.$-]{0,80})"
    r"|['\"`]([A-Za-z_$][\w.$-]{0,80})['\"`] (?:is a required|is required|was unexpected|must|should)"
    r"|['\"]loc['\"]: ?[\[(](?:[^\])]{0,200}, ?)?['\"]([\w.$-]{1,80})['\"]"
    r"|\n([A-Za-z_$][\w.$-]{0,80})\n {1,4}\w"
)
_NO_NAME = frozenset(
    "is are was were for to of in and or that must not required missing error value values with".split()
)


def error_kind(text: str, failed: bool | None = None) -> str:
    """One of seal.core.types.ERROR_KINDS, or "" for a normal result.

    `failed`: what the log says of it beside the text. Where it says that all went well, no prose is heard.
    """
    message = error_text(text, heard=failed is None)
    if message is None and not failed:
        return ""
    message = text if message is None else message
    shown = message if len(message) <= 2 * _SHORT else f"{message[:_SHORT]}\n{message[-_SHORT:]}"
    return next((kind for kind, pattern in _KINDS if pattern.search(shown)), "other")


def error_text(text: str, heard: bool = True) -> str | None:
    """What a result complains of; None for a normal result. `heard`: whether prose counts."""
    value = _literal(text)
    if value is not None:
        try:
            return _complaint(value, text, heard)
        except RecursionError:  # what it complains of is nested too deep to be written
            return text
    return text if heard and _hears(text) else None


def flagged(record: Mapping[str, Json]) -> bool | None:
    """Whether a record says outright that it failed (True) or did not (False); None where it says neither."""
    said = {_flag(str(key), value, record) for key, value in record.items()}
    return True if True in said else False if False in said else None


def named_parameter(text: str, names: Iterable[str]) -> str:
    """The parameter that an error text names: one of `names`, quoted or as a word, else what stands for one, or ""."""
    text = text[:_SHORT]
    known = {name: re.search(rf"(?<![\w-]){re.escape(name[:100])}(?![\w-])", text) for name in names}
    found = [
        (text[m.start() - 1 : m.start()] not in ("'", '"', "`"), m.start(), name) for name, m in known.items() if m
    ]
    told = [next(filter(None, m.groups())).rstrip(".") for m in _NAMED.finditer(text)]
    told = [name for name in told if name.lower() not in _NO_NAME]
    quoted = [name for plain, _, name in sorted(found) if not plain]
    both = [name for name in told if name in known] + quoted + told[:1] + [name for _, _, name in sorted(found)]
    return both[0] if both else ""


def _flag(key: str, value: Json, record: Mapping[str, Json]) -> bool | None:
    key = key.replace("_", "").replace("-", "").lower()
    word = value.strip().lower() if isinstance(value, str) else ""
    value = {"true": True, "false": False}.get(
        word, int(word) if word.isascii() and word.isdigit() and len(word) == 3 else value
    )
    if isinstance(value, bool):
        return not value if key in _WORKED else value if key in _FAILED or key == "error" and value else None
    if isinstance(value, int):
        if key in _HTTP and (key != "code" or any(name in record for name in _MESSAGES)):
            return True if 400 <= value < 600 or key == "code" and value < 0 else None
        return value != 0 if key in _EXIT else None
    if key in _STATUS and word in _STATUS_BAD:
        # a record of a thing that failed is no failure to get it
        return (
            None if word != "error" and any(name == "id" or name.lower().endswith("_id") for name in record) else True
        )
    return False if key in _STATUS and word in _STATUS_GOOD else None


def _complaint(value: Json, text: str, heard: bool) -> str | None:
    """The first one of a dict, or of dicts and texts in a list, in lists of them too."""
    waiting, first = [value], True
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            says = flagged(item) if first or len(waiting) == 0 and value == [item] else None
            error = next((v for key, v in item.items() if _is_error(str(key), v)), None)
            if says or error is not None and says is None:
                message = error or next((item[key] for key in _MESSAGES if item.get(key)), text)
                return str(message)
            if says is None and (message := _message(item, heard)) is not None:
                return message
        if isinstance(item, str) and heard and _begins(item):
            return item
        if isinstance(item, list):
            waiting += reversed(item)
        first = False
    return None


def _is_error(key: str, value: Json) -> bool:
    key = key.replace("_", "").lower()
    nothing = isinstance(value, str) and value.strip().lower() in ("", "none", "null", "false", "no error", "0")
    return key in _ERROR_KEYS and bool(value) and not nothing


def _message(item: Mapping[str, Json], heard: bool) -> str | None:
    """The words of a record that holds little else; FastAPI's and pydantic's own shapes."""
    detail = item.get("detail", item if "loc" in item and "msg" in item else None)
    first = detail[0] if isinstance(detail, list) and detail else detail
    if isinstance(first, dict) and "msg" in first and ("loc" in first or "type" in first):
        return str(detail)
    if isinstance(detail, str) and len(item) == 1:
        return detail
    said = [
        item[key]
        for key in (_MESSAGES[:4] if len(item) > 1 else (*_MESSAGES, "status"))
        if isinstance(item.get(key), str)
    ]
    return next((words for words in said if heard and len(item) <= 3 and _hears(words)), None)


def _hears(text: str) -> bool:
    text = text.strip()
    if _begins(text):
        return True
    tail = text[-_WINDOW:]
    if _EXITED.search(tail[-200:].rpartition("\n")[2]) or _EXITED.search(text[:_WINDOW].partition("\n")[0]):
        return True
    last = tail.rpartition("\n")[2]
    if _TRACE in text and re.match(r"[\w.]{0,200}(?:Error|Exception|Interrupt|Exit)\b", last):
        return True
    return len(text) <= _SHORT and any(
        _says(line) for line in [text[:_WINDOW].partition("\n")[0], *_SHELL.findall(last)]
    )


def _begins(text: str) -> bool:
    return _BEGINS.match(text.lstrip(" \t\r\n[({'\"")[:_WINDOW].partition("\n")[0]) is not None


def _says(line: str) -> bool:
    return any(not _OF_ELSE.search(line, 0, found.start()) for found in _SAYS.finditer(line))


def _literal(text: str) -> Json:
    """The JSON or Python literal a text is, or None. Literals only: nothing is evaluated."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return None
    for read in (json.loads, ast.literal_eval):
        if read is json.loads or len(text) <= MAX_LITERAL and _FLAG.search(text):
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return read(text)
    return None
