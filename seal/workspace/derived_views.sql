-- The views that answer more than one table does, over the plain ones; later ones build on earlier ones.
-- Rates are shares of user turns in [0, 1]. A failure is a turn's own: its primary label, root, of the policy's doing.
-- Words in braces are filled in by derived_views.py.

CREATE VIEW trajectories AS
SELECT t.* EXCLUDE (category, n_turns), coalesce(t.category, k.category) AS category, k.scenario_id, k.split,
  coalesce(t.n_turns, len(k.turns)) AS n_turns, o.success, o.progress
FROM stored.plain_trajectories t
LEFT JOIN stored.outcomes o USING (round, phase, rollout_id)
LEFT JOIN tasks k ON k.task_id = t.task_id;

CREATE VIEW failures AS
SELECT d.round, d.parent, d.depth, d.phase, d.rollout_id, t.task_id, t.category, t.split, t.interface_mode,
  d.turn, d.step, d.label, d.detail, d.tool, d.parameter, d.confidence, d.evidence
FROM diagnoses d JOIN trajectories t USING (round, phase, rollout_id)
WHERE d."primary" AND d.root AND d.label IN ({failures});

-- Every label that the split ever showed, in every round, against the parent: a label that is gone has rate 0.
CREATE VIEW label_shift AS
WITH usable AS (
  SELECT round, phase, rollout_id, split FROM trajectories
  WHERE phase = 'evaluate' AND interface_mode = 'off' AND stop_reason <> 'env_error'
    AND (round, rollout_id) NOT IN
      (SELECT (round, rollout_id) FROM diagnoses WHERE label IN ({not_the_policy}))
), turns AS (
  SELECT round, split, count(DISTINCT (rollout_id, turn)) AS turns
  FROM usable JOIN diagnoses USING (round, phase, rollout_id) GROUP BY ALL
), hits AS (
  SELECT round, split, label, count(*) AS n
  FROM usable JOIN failures USING (round, phase, rollout_id, split) GROUP BY ALL
), rates AS (
  SELECT round, split, label, coalesce(n, 0) AS n, turns, coalesce(n, 0) / turns AS rate
  FROM turns JOIN (SELECT DISTINCT split, label FROM hits) USING (split) LEFT JOIN hits USING (round, split, label)
)
SELECT round, r.parent, r.depth, now.split, now.label, now.n, now.turns, now.rate, now.rate - before.rate AS change
FROM rates now LEFT JOIN rounds r USING (round)
LEFT JOIN rates before ON before.round = r.parent AND before.split = now.split AND before.label = now.label;

-- What a cue is worth: within a task, evolved rollouts that had it against those that left it out at random.
CREATE VIEW cue_effect AS
WITH evolved AS (
  SELECT t.round, t.parent, t.depth, t.phase, t.task_id, t.dropped_item, t.success::INT AS success, k.toolset
  FROM trajectories t JOIN tasks k USING (task_id)
  WHERE t.interface_mode <> 'off' AND t.phase <> 'evaluate' AND t.success IS NOT NULL
), cues AS (
  SELECT DISTINCT ON (item) item, kind, target, text, split_part(target, '.', 1) AS tool
  FROM stored.interface_items ORDER BY item, round
), tried AS (
  SELECT DISTINCT round, phase, dropped_item AS item FROM evolved WHERE dropped_item <> ''
), exposed AS (
  SELECT evolved.* EXCLUDE (toolset), tried.item, dropped_item <> tried.item AS had
  FROM evolved JOIN tried USING (round, phase) LEFT JOIN cues USING (item)
  WHERE list_contains(toolset, tool) OR (tool IN (SELECT unnest(toolset) FROM tasks)) IS NOT TRUE
), by_task AS (
  SELECT round, parent, depth, phase, item, task_id, count(*) FILTER (had) AS n_with,
    count(*) FILTER (NOT had) AS n_without, avg(success) FILTER (had) - avg(success) FILTER (NOT had) AS effect
  FROM exposed GROUP BY ALL
)
SELECT b.round, b.parent, b.depth, b.phase, b.item, c.kind, c.target, c.text,
  sum(effect * n_with * n_without / (n_with + n_without)) / sum(n_with * n_without / (n_with + n_without))
    FILTER (n_with > 0 AND n_without > 0) AS uplift,
  count(*) FILTER (n_with > 0 AND n_without > 0) AS tasks,
  sum(n_with)::BIGINT AS n_with, sum(n_without)::BIGINT AS n_without
FROM by_task b LEFT JOIN cues c USING (item) GROUP BY ALL;

-- Do rollouts repeat what a cue says? Those with three words in a row of a cue they had; bare ones, of any that others
-- of the round had: what would be said anyway.
CREATE VIEW copying AS
WITH had AS (
  SELECT DISTINCT round, phase, interface_hash FROM trajectories WHERE interface_mode <> 'off'
), cues AS (
  SELECT DISTINCT interface_hash, item, regexp_extract_all(lower(text), '[\pL\pN_]+') AS words
  FROM stored.interface_items WHERE status = 'active'
), wordings AS (
  SELECT interface_hash, item,
    unnest([' ' || array_to_string(words[i:i + 2], ' ') || ' ' FOR i IN range(1, len(words) - 1)]) AS wording
  FROM cues
), said AS (
  SELECT round, phase, rollout_id,
    string_agg(' ' || array_to_string(regexp_extract_all(lower(text), '[\pL\pN_]+'), ' ') || ' ', '|') AS said
  FROM steps GROUP BY ALL
), copied AS (
  SELECT DISTINCT t.round, t.phase, t.rollout_id
  FROM trajectories t JOIN said USING (round, phase, rollout_id) JOIN had ON (had.round, had.phase) = (t.round, t.phase)
  JOIN wordings w ON w.interface_hash = had.interface_hash AND w.item <> t.dropped_item
  WHERE (t.interface_mode = 'off' OR t.interface_hash = had.interface_hash) AND contains(said, wording)
)
SELECT t.round, t.parent, t.depth, t.phase, t.interface_mode, count(*) AS rollouts, count(c.rollout_id) AS copying,
  copying / rollouts AS share
FROM trajectories t SEMI JOIN had USING (round, phase) LEFT JOIN copied c USING (round, phase, rollout_id) GROUP BY ALL;

-- How calls of a tool end; error_kind '' is success. Texts that are no call have the tool ''.
CREATE VIEW tool_matrix AS
WITH played AS (
  SELECT s.round, s.parent, s.depth, s.phase, t.interface_mode, s.calls, s.results, s.errors
  FROM steps s JOIN trajectories t USING (round, phase, rollout_id)
), ended AS (
  SELECT * EXCLUDE (calls, results, errors, pair), pair[1].name AS tool, pair[2].error_kind AS error_kind
  FROM (SELECT *, unnest(list_zip(calls, results)) AS pair FROM played)
  UNION ALL
  SELECT * EXCLUDE (calls, results, errors, error), '' AS tool, error.kind AS error_kind
  FROM (SELECT *, unnest(errors) AS error FROM played)
)
SELECT *, n / sum(n) OVER (PARTITION BY round, phase, interface_mode, tool) AS share
FROM (SELECT *, count(*) AS n FROM ended GROUP BY ALL);

-- A root failure and what followed from it in later turns.
CREATE VIEW cascades AS
WITH follows AS (
  SELECT round, phase, rollout_id, turn, label, TRY_CAST(evidence ->> 'from_turn' AS INTEGER) AS from_turn
  FROM diagnoses WHERE "primary" AND NOT root AND label IN ({failures})
)
SELECT f.round, f.parent, f.depth, f.phase, f.rollout_id, f.task_id, f.category, f.interface_mode,
  f.turn AS root_turn, f.label AS root_label, f.detail AS root_detail, f.tool AS root_tool,
  count(c.turn) AS consequences, coalesce(list(c.label ORDER BY c.turn) FILTER (c.turn IS NOT NULL), []) AS labels
FROM failures f LEFT JOIN follows c
  ON (c.round, c.phase, c.rollout_id, c.from_turn) = (f.round, f.phase, f.rollout_id, f.turn)
GROUP BY ALL;

-- User turns in which the policy was shown an error, and whether the turn was right in the end.
CREATE VIEW recoveries AS
WITH errors AS (
  SELECT round, parent, depth, phase, rollout_id, turn, step,
    list_concat([r.error_kind FOR r IN results IF r.error_kind <> ''], [e.kind FOR e IN errors]) AS kinds
  FROM steps
)
SELECT e.round, e.parent, e.depth, e.phase, t.interface_mode, t.task_id, t.category, e.rollout_id, e.turn,
  sum(len(e.kinds))::INTEGER AS n_errors, flatten(list(e.kinds ORDER BY e.step)) AS error_kinds,
  flatten(list(e.kinds ORDER BY e.step))[1] AS first_error, v.valid AS recovered
FROM errors e JOIN trajectories t USING (round, phase, rollout_id)
JOIN stored.verdicts v USING (round, phase, rollout_id, turn)
WHERE len(e.kinds) > 0
GROUP BY ALL;

-- Which parameter of a tool fails how, over the calls that were made of it; every root label counts, once a turn.
CREATE VIEW parameter_matrix AS
WITH hits AS (
  SELECT d.round, d.parent, d.depth, d.phase, t.interface_mode, d.tool, d.parameter, d.label, d.detail,
    count(DISTINCT (d.rollout_id, d.turn)) AS n, count(DISTINCT t.task_id) AS tasks
  FROM diagnoses d JOIN trajectories t USING (round, phase, rollout_id)
  WHERE d.root AND d.tool <> '' AND d.parameter <> '' AND d.label IN ({failures})
  GROUP BY ALL
), made AS (
  SELECT round, phase, interface_mode, tool, sum(n)::BIGINT AS calls FROM tool_matrix GROUP BY ALL
)
SELECT h.round, h.parent, h.depth, h.phase, h.interface_mode, h.tool, h.parameter, h.label, h.detail, h.n, h.tasks,
  coalesce(m.calls, 0) AS calls
FROM hits h LEFT JOIN made m USING (round, phase, interface_mode, tool);

-- Turns that show two labels at once, as roots; `lift` against chance: 1 is none.
CREATE VIEW co_occurrence AS
WITH shown AS (
  SELECT DISTINCT d.round, d.parent, d.depth, d.phase, t.interface_mode, d.rollout_id, d.turn, d.label
  FROM diagnoses d JOIN trajectories t USING (round, phase, rollout_id)
  WHERE d.root AND (d."primary" OR d.confidence >= {certain}) AND d.label IN ({failures})
), turns AS (
  SELECT round, phase, interface_mode, count(DISTINCT (rollout_id, turn)) AS turns FROM shown GROUP BY ALL
), counts AS (
  SELECT round, phase, interface_mode, label, count(*) AS n FROM shown GROUP BY ALL
), together AS (
  SELECT a.round, a.parent, a.depth, a.phase, a.interface_mode, a.label, b.label AS other, count(*) AS n
  FROM shown a JOIN shown b USING (round, phase, interface_mode, rollout_id, turn) WHERE a.label <> b.label
  GROUP BY ALL
)
SELECT b.round, b.parent, b.depth, b.phase, b.interface_mode, b.label, b.other, b.n, x.n AS n_label, y.n AS n_other,
  b.n / x.n AS share, b.n * t.turns / (x.n * y.n) AS lift
FROM together b JOIN turns t USING (round, phase, interface_mode)
JOIN counts x ON (x.round, x.phase, x.interface_mode, x.label) = (b.round, b.phase, b.interface_mode, b.label)
JOIN counts y ON (y.round, y.phase, y.interface_mode, y.label) = (b.round, b.phase, b.interface_mode, b.other);

-- Where in an episode it fails: of all user turns of that place, how many fail by themselves.
CREATE VIEW positions AS
WITH reached AS (
  SELECT d.round, d.parent, d.depth, d.phase, t.interface_mode, d.turn, count(*) AS turns
  FROM diagnoses d JOIN trajectories t USING (round, phase, rollout_id)
  WHERE d."primary" AND d.turn < t.n_turns_reached GROUP BY ALL
), hits AS (
  SELECT round, phase, interface_mode, turn, label, count(*) AS n FROM failures GROUP BY ALL
)
SELECT r.round, r.parent, r.depth, r.phase, r.interface_mode, r.turn, h.label, h.n, r.turns, h.n / r.turns AS rate
FROM reached r JOIN hits h USING (round, phase, interface_mode, turn);

-- Each row of a profile along the line of its round: a kind of failure that an earlier round lacks has rate 0 there.
CREATE VIEW profile_trend AS
WITH places AS (
  SELECT p.*, unnest(r.line) AS place FROM profile p JOIN rounds r USING (round)
), measured AS (
  SELECT DISTINCT q.round AS place, r.depth AS place_depth, q.category FROM stored.profile q JOIN rounds r USING (round)
), along AS (
  SELECT p.round, p.parent, p.depth, p.category, p.tool, p.parameter, p.label, p.n, p.turns, p.rate, p.low, p.high,
    p.change, p.change_low, p.change_high, m.place_depth, coalesce(q.rate, 0) AS rate_there
  FROM places p JOIN measured m USING (place, category)
  LEFT JOIN stored.profile q ON (q.round, q.category, q.tool, q.parameter, q.label)
    = (p.place, p.category, p.tool, p.parameter, p.label)
)
SELECT * EXCLUDE (place_depth, rate_there), list(rate_there ORDER BY place_depth) AS rates,
  CASE WHEN count(*) > 1 THEN regr_slope(rate_there, place_depth) END AS slope
FROM along GROUP BY ALL;
