SELECT
  *
FROM `step_tensor_cores`
