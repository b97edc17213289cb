SELECT
  *
FROM "step_path"
