SELECT
  *
FROM `step_copies`
