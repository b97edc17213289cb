WITH `t11` AS (
  SELECT
    ROW_NUMBER() OVER (ORDER BY `t10`.`value` ASC) - 1 AS `id`,
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
      UNION DISTINCT
      SELECT
        *
      FROM (
        SELECT
          `t0`.`demangled_name` AS `value`
        FROM `kernels` AS `t0`
      ) AS `t5`
    ) AS `t8`
    UNION DISTINCT
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
      UNION DISTINCT
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
  `t21`.`run`,
  `t21`.`rank`,
  `t21`.`step`,
  `t21`.`start_ns` AS `start`,
  `t21`.`start_ns` + `t21`.`duration_ns` AS `end`,
  `t21`.`device_id` AS `deviceId`,
  `t21`.`context_id` AS `contextId`,
  `t21`.`stream_id` AS `streamId`,
  `t21`.`correlation_id` AS `correlationId`,
  `t21`.`process_id` * 16777216 AS `globalPid`,
  `t21`.`graph_node_id` AS `graphNodeId`,
  `t21`.`shortName`,
  `t21`.`demangledName`,
  `t21`.`grid_x` AS `gridX`,
  `t21`.`grid_y` AS `gridY`,
  `t21`.`grid_z` AS `gridZ`,
  `t21`.`block_x` AS `blockX`,
  `t21`.`block_y` AS `blockY`,
  `t21`.`block_z` AS `blockZ`,
  `t21`.`registers_per_thread` AS `registersPerThread`,
  `t21`.`static_shared_bytes` AS `staticSharedMemory`,
  `t21`.`dynamic_shared_bytes` AS `dynamicSharedMemory`,
  `t21`.`local_bytes_per_thread` AS `localMemoryPerThread`,
  `t21`.`launch_type` AS `launchType`,
  `t21`.`graph_id` AS `graphId`
FROM (
  SELECT
    `t20`.*
    EXCEPT (`of_demangledName`)
  FROM (
    SELECT
      `t19`.`run`,
      `t19`.`rank`,
      `t19`.`step`,
      `t19`.`id`,
      `t19`.`start_ns`,
      `t19`.`duration_ns`,
      `t19`.`device_id`,
      `t19`.`context_id`,
      `t19`.`stream_id`,
      `t19`.`correlation_id`,
      `t19`.`name`,
      `t19`.`grid_x`,
      `t19`.`grid_y`,
      `t19`.`grid_z`,
      `t19`.`block_x`,
      `t19`.`block_y`,
      `t19`.`block_z`,
      `t19`.`cluster_x`,
      `t19`.`cluster_y`,
      `t19`.`cluster_z`,
      `t19`.`registers_per_thread`,
      `t19`.`static_shared_bytes`,
      `t19`.`dynamic_shared_bytes`,
      `t19`.`local_bytes_per_thread`,
      `t19`.`launch_type`,
      `t19`.`graph_id`,
      `t19`.`graph_node_id`,
      `t19`.`priority`,
      `t19`.`demangled_name`,
      `t19`.`class`,
      `t19`.`process_id`,
      `t19`.`op`,
      `t19`.`shortName`,
      `t15`.`demangledName`,
      `t15`.`of_demangledName`
    FROM (
      SELECT
        `t17`.*
        EXCEPT (`of_shortName`)
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
          `t3`.`demangled_name`,
          `t3`.`class`,
          `t3`.`process_id`,
          `t3`.`op`,
          `t16`.`shortName`,
          `t16`.`of_shortName`
        FROM `kernels` AS `t3`
        INNER JOIN (
          SELECT
            `t12`.`id` AS `shortName`,
            `t12`.`value` AS `of_shortName`
          FROM `t11` AS `t12`
        ) AS `t16`
          ON `t3`.`name` = `t16`.`of_shortName`
      ) AS `t17`
    ) AS `t19`
    INNER JOIN (
      SELECT
        `t12`.`id` AS `demangledName`,
        `t12`.`value` AS `of_demangledName`
      FROM `t11` AS `t12`
    ) AS `t15`
      ON `t19`.`demangled_name` = `t15`.`of_demangledName`
  ) AS `t20`
) AS `t21`
