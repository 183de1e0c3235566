"""The look of the page: one style sheet, no script, no font from elsewhere."""

CSS = """
:root { --ink: #1f2933; --soft: #52606d; --line: #e4e7eb; --back: #f7f8fa; --card: #fff; --blue: #0b6e99;
  --good: #3f7d2c; --bad: #a3313f; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 25px; margin: 0 0 2px; }
h2 { font-size: 18px; margin: 38px 0 12px; }
h3 { font-size: 15px; margin: 20px 0 8px; }
p { margin: 6px 0 12px; }
.soft { color: var(--soft); }
.small { font-size: 13px; }
code, pre, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12.5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 22px 0 6px; }
.tile, figure, .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: 12px 16px; }
.tile b { display: block; font-size: 24px; font-weight: 600; line-height: 1.25; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 14px; }
figure { margin: 0; padding: 14px 14px 8px; }
figure svg { width: 100%; height: auto; }
figcaption { font-size: 13px; color: var(--soft); margin: 0 0 8px; }
figcaption b { color: var(--ink); font-size: 14px; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 13.5px; }
.card table { margin: 0; }
th, td { padding: 6px 10px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); font-size: 12.5px; }
tr:last-child td { border-bottom: 0; }
.l { text-align: left; }
.wrap { white-space: normal; min-width: 190px; }
.good { color: var(--good); }
.bad { color: var(--bad); }
details { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; padding: 0 16px; }
details > summary { cursor: pointer; padding: 10px 0; font-weight: 600; }
details[open] { padding-bottom: 14px; }
.tag { display: inline-block; padding: 0 8px; border-radius: 9px; font-size: 12px; background: #e8eef2;
  color: var(--ink); margin-right: 4px; white-space: nowrap; }
.tag.good { background: #e3f1de; }
.tag.bad { background: #f7e1e3; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 18px; }
.turn { border-left: 3px solid var(--line); padding: 2px 0 2px 12px; margin: 10px 0; }
.turn.good { border-color: #8dbf7c; color: inherit; }
.turn.bad { border-color: #d58b94; color: inherit; }
.user { font-weight: 600; overflow-wrap: anywhere; }
.step { margin: 3px 0; overflow-wrap: anywhere; }
.step .result { color: var(--soft); }
.step .error { color: var(--bad); }
@media print { body { background: #fff; } details { break-inside: avoid; } }
"""
