SELECT
  *
FROM `step_cost`
