SELECT
  *
FROM "step_streams"
