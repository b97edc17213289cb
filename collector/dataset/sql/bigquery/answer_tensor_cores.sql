SELECT
  *
FROM `step_tensor_core_uses`
