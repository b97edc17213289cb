SELECT
  *
FROM "step_idle_ops"
