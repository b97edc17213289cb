SELECT
  `t15`.`run`,
  `t15`.`rank`,
  `t15`.`step`,
  `t15`.`api`,
  COUNT(*) AS `calls`,
  SUM(`t15`.`activities`) AS `activities`,
  SUM(`t15`.`api_ns`) AS `api_ns`,
  MIN(`t15`.`min_delay_ns`) AS `min_delay_ns`,
  MAX(`t15`.`max_delay_ns`) AS `max_delay_ns`,
  MIN(`t15`.`min_queue_ns`) AS `min_queue_ns`,
  GREATEST(MAX(`t15`.`max_queue_ns`), 0) AS `max_queue_ns`
FROM (
  SELECT
    `t14`.`run`,
    `t14`.`rank`,
    `t14`.`step`,
    `t14`.`api`,
    `t14`.`api_id`,
    COUNT(*) AS `activities`,
    MAX(`t14`.`api_ns`) AS `api_ns`,
    MIN(`t14`.`delay_ns`) AS `min_delay_ns`,
    MAX(`t14`.`delay_ns`) AS `max_delay_ns`,
    MIN(`t14`.`since_ns`) AS `min_queue_ns`,
    MAX(`t14`.`since_ns`) AS `max_queue_ns`
  FROM (
    SELECT
      `t13`.`run`,
      `t13`.`rank`,
      `t13`.`step`,
      `t13`.`device_id`,
      `t13`.`context_id`,
      `t13`.`stream_id`,
      `t13`.`correlation_id`,
      `t13`.`start_ns`,
      `t13`.`duration_ns`,
      `t13`.`class`,
      `t13`.`end_ns`,
      `t13`.`api`,
      `t13`.`api_id`,
      `t13`.`call_ns`,
      `t13`.`api_ns`,
      `t13`.`start_ns` - `t13`.`call_ns` AS `delay_ns`,
      (
        `t13`.`start_ns` - `t13`.`call_ns`
      ) - `t13`.`api_ns` AS `since_ns`
    FROM (
      SELECT
        `t12`.`run`,
        `t12`.`rank`,
        `t12`.`step`,
        `t12`.`device_id`,
        `t12`.`context_id`,
        `t12`.`stream_id`,
        `t12`.`correlation_id`,
        `t12`.`start_ns`,
        `t12`.`duration_ns`,
        `t12`.`class`,
        `t12`.`end_ns`,
        `t8`.`api`,
        `t8`.`api_id`,
        `t8`.`call_ns`,
        `t8`.`api_ns`
      FROM (
        SELECT
          `t10`.`run`,
          `t10`.`rank`,
          `t10`.`step`,
          `t10`.`device_id`,
          `t10`.`context_id`,
          `t10`.`stream_id`,
          `t10`.`correlation_id`,
          `t10`.`start_ns`,
          `t10`.`duration_ns`,
          `t10`.`class`,
          `t10`.`start_ns` + `t10`.`duration_ns` AS `end_ns`
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t1`.`run`,
              `t1`.`rank`,
              `t1`.`step`,
              `t1`.`device_id`,
              `t1`.`context_id`,
              `t1`.`stream_id`,
              `t1`.`correlation_id`,
              `t1`.`start_ns`,
              `t1`.`duration_ns`,
              'memset' AS `class`
            FROM `memsets` AS `t1`
          ) AS `t5`
          UNION ALL
          SELECT
            *
          FROM (
            SELECT
              *
            FROM (
              SELECT
                `t2`.`run`,
                `t2`.`rank`,
                `t2`.`step`,
                `t2`.`device_id`,
                `t2`.`context_id`,
                `t2`.`stream_id`,
                `t2`.`correlation_id`,
                `t2`.`start_ns`,
                `t2`.`duration_ns`,
                `t2`.`class`
              FROM `kernels` AS `t2`
            ) AS `t6`
            UNION ALL
            SELECT
              *
            FROM (
              SELECT
                `t3`.`run`,
                `t3`.`rank`,
                `t3`.`step`,
                `t3`.`device_id`,
                `t3`.`context_id`,
                `t3`.`stream_id`,
                `t3`.`correlation_id`,
                `t3`.`start_ns`,
                `t3`.`duration_ns`,
                'copy' AS `class`
              FROM `copies` AS `t3`
            ) AS `t7`
          ) AS `t9`
        ) AS `t10`
      ) AS `t12`
      INNER JOIN (
        SELECT
          `t0`.`api`,
          `t0`.`id` AS `api_id`,
          `t0`.`start_ns` AS `call_ns`,
          `t0`.`duration_ns` AS `api_ns`,
          `t0`.`correlation_id` AS `of_correlation_id`,
          `t0`.`run` AS `of_run`,
          `t0`.`rank` AS `of_rank`,
          `t0`.`step` AS `of_step`
        FROM `api_calls` AS `t0`
        WHERE
          `t0`.`is_outer`
      ) AS `t8`
        ON `t12`.`run` = `t8`.`of_run`
        AND `t12`.`rank` = `t8`.`of_rank`
        AND `t12`.`step` = `t8`.`of_step`
        AND `t12`.`correlation_id` = `t8`.`of_correlation_id`
    ) AS `t13`
  ) AS `t14`
  GROUP BY
    1,
    2,
    3,
    4,
    5
) AS `t15`
GROUP BY
  1,
  2,
  3,
  4
