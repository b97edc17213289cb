SELECT
  *
FROM "step_ops"
