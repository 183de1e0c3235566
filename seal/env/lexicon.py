"""The closed vocabulary of the built-in domains: every word a task, a tool doc, a result or a cue can contain.

The reader that ships with the project learned these words with *random* meanings (seal.env.procedural), so what a
word means in a domain has to be read from the docs or learned there. A new built-in domain uses these words.
"""

CODES = tuple(f"K{i}" for i in range(1, 13))
PREFIXES = ("ORD-", "EU-", "REF-", "DOC-", "AC-", "TX-")
IDS = tuple(str(n) for n in range(100, 160))
STATUSES = ("waiting", "packed", "shipped", "stored")

# Names of entities and parameters: said as `order`, written as `order=`.
NOUNS = tuple(
    """order shipment customer invoice parcel ticket case document page account payment contract region reason size
    zone carrier speed tier team paper span color level kind format field rule currency topic market channel risk
    period source status grade unit""".split()
)
TOOL_NAMES = tuple(
    """find_order verify_buyer inspect_item approve_case issue_refund swap_item stop_order set_address send_parcel
    track_parcel hold_parcel give_discount call_team wrap_gift print_label scan_document find_account check_identity
    open_review map_field run_rule flag_payment freeze_account file_report extract_table set_currency assign_risk
    close_case convert_unit route_ticket add_note mark_item pull_record sign_off start_job update_entry lock_row
    fetch_batch post_value tag_group""".split()
)
# Words users ask for a tool by.
INTENTS = tuple(
    """find verify inspect approve refund exchange cancel move send track hold discount escalate wrap label scan
    lookup identify review map validate flag freeze report extract convert classify close measure route note mark
    pull sign start update lock fetch post tag""".split()
)
# Words that stand for a code.
CHOICES = tuple(
    """damaged late wrong lost small medium large north south east west rail air road fast slow day week month
    bronze silver gold legal billing safety red blue green high low normal retail private public annual monthly
    daily euro dollar yen pound total net gross fraud urgent minor major draft final partial full
    metric imperial cash card wire loan bond""".split()
)
# Words that stand for nothing.
FILLERS = tuple(
    """please can you i want a for it came one in to the by and is my of on am give let see print moved so from with
    this that now hello thanks again dog likes sky we had rain all today much what do need there just really they
    would could then also up""".split()
)
GRAMMAR = tuple(
    """done ok error invalid denied refused missing unexpected unknown not found tool parse after requires starts
    returns one new | ; as""".split()
)
