SELECT
  *
FROM `step_kernel_names`
