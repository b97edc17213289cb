SELECT
  *
FROM "step_idle"
