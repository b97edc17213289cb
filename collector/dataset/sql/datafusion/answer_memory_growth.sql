SELECT
  *
FROM "step_memory_growth"
