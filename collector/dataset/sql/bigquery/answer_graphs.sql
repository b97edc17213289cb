SELECT
  *
FROM `step_graphs`
