SELECT
  *
FROM `step_gaps`
