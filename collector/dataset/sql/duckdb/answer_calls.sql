SELECT
  *
FROM "step_calls"
