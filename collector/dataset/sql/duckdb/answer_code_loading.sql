SELECT
  *
FROM "step_code_loading"
