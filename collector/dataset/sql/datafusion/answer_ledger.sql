SELECT
  *
FROM "step_rows"
