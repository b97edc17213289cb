SELECT
  *
FROM `step_concurrency`
