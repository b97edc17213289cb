SELECT
  *
FROM "step_memory"
