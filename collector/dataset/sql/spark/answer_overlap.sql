SELECT
  *
FROM `step_overlap`
