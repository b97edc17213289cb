WITH `t11` AS (
  SELECT
    ROW_NUMBER() OVER (ORDER BY `t10`.`value` ASC NULLS LAST) - 1 AS `id`,
    `t10`.`value`
  FROM (
    SELECT
      *
    FROM (
      SELECT
        *
      FROM (
        SELECT
          `t0`.`name` AS `value`
        FROM `kernels` AS `t0`
      ) AS `t4`
      UNION
      SELECT
        *
      FROM (
        SELECT
          `t0`.`demangled_name` AS `value`
        FROM `kernels` AS `t0`
      ) AS `t5`
    ) AS `t8`
    UNION
    SELECT
      *
    FROM (
      SELECT
        *
      FROM (
        SELECT
          `t1`.`name` AS `value`
        FROM `api_calls` AS `t1`
      ) AS `t6`
      UNION
      SELECT
        *
      FROM (
        SELECT
          `t2`.`path` AS `value`
        FROM `annotations` AS `t2`
      ) AS `t7`
    ) AS `t9`
  ) AS `t10`
)
SELECT
  `t17`.`run`,
  `t17`.`rank`,
  `t17`.`step`,
  `t17`.`start_ns` AS `start`,
  `t17`.`start_ns` + `t17`.`duration_ns` AS `end`,
  `t17`.`device_id` AS `deviceId`,
  `t17`.`context_id` AS `contextId`,
  `t17`.`stream_id` AS `streamId`,
  `t17`.`correlation_id` AS `correlationId`,
  `t17`.`process_id` * 16777216 AS `globalPid`,
  `t17`.`graph_node_id` AS `graphNodeId`,
  `t17`.`shortName`,
  `t17`.`demangledName`,
  `t17`.`grid_x` AS `gridX`,
  `t17`.`grid_y` AS `gridY`,
  `t17`.`grid_z` AS `gridZ`,
  `t17`.`block_x` AS `blockX`,
  `t17`.`block_y` AS `blockY`,
  `t17`.`block_z` AS `blockZ`,
  `t17`.`registers_per_thread` AS `registersPerThread`,
  `t17`.`static_shared_bytes` AS `staticSharedMemory`,
  `t17`.`dynamic_shared_bytes` AS `dynamicSharedMemory`,
  `t17`.`local_bytes_per_thread` AS `localMemoryPerThread`,
  `t17`.`launch_type` AS `launchType`,
  `t17`.`graph_id` AS `graphId`
FROM (
  SELECT
    `t3`.`run`,
    `t3`.`rank`,
    `t3`.`step`,
    `t3`.`id`,
    `t3`.`start_ns`,
    `t3`.`duration_ns`,
    `t3`.`device_id`,
    `t3`.`context_id`,
    `t3`.`stream_id`,
    `t3`.`correlation_id`,
    `t3`.`name`,
    `t3`.`grid_x`,
    `t3`.`grid_y`,
    `t3`.`grid_z`,
    `t3`.`block_x`,
    `t3`.`block_y`,
    `t3`.`block_z`,
    `t3`.`cluster_x`,
    `t3`.`cluster_y`,
    `t3`.`cluster_z`,
    `t3`.`registers_per_thread`,
    `t3`.`static_shared_bytes`,
    `t3`.`dynamic_shared_bytes`,
    `t3`.`local_bytes_per_thread`,
    `t3`.`launch_type`,
    `t3`.`graph_id`,
    `t3`.`graph_node_id`,
    `t3`.`priority`,
    `t3`.`source_graph_node_id`,
    `t3`.`captured_external_id`,
    `t3`.`graph_degree`,
    `t3`.`demangled_name`,
    `t3`.`class`,
    `t3`.`process_id`,
    `t3`.`op`,
    `t3`.`occupancy_percent`,
    `t3`.`uses_tensor_cores`,
    `t15`.`shortName`,
    `t16`.`demangledName`
  FROM `kernels` AS `t3`
  INNER JOIN (
    SELECT
      `t12`.`id` AS `shortName`,
      `t12`.`value` AS `of_shortName`
    FROM `t11` AS `t12`
  ) AS `t15`
    ON `t3`.`name` = `t15`.`of_shortName`
  INNER JOIN (
    SELECT
      `t12`.`id` AS `demangledName`,
      `t12`.`value` AS `of_demangledName`
    FROM `t11` AS `t12`
  ) AS `t16`
    ON `t3`.`demangled_name` = `t16`.`of_demangledName`
) AS `t17`
