WITH `t13` AS (
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
)
SELECT
  `t19`.`run`,
  `t19`.`rank`,
  `t19`.`step`,
  `t19`.`device_id`,
  `t19`.`context_id`,
  `t19`.`stream_id`,
  MAX(`t19`.`at_ns`) - MIN(`t19`.`at_ns`) AS `window_ns`,
  MAX(`t19`.`depth`) AS `max_depth`
FROM (
  SELECT
    `t18`.`run`,
    `t18`.`rank`,
    `t18`.`step`,
    `t18`.`device_id`,
    `t18`.`context_id`,
    `t18`.`stream_id`,
    `t18`.`at_ns`,
    `t18`.`change`,
    SUM(`t18`.`change`) OVER (
      PARTITION BY `t18`.`run`, `t18`.`rank`, `t18`.`step`, `t18`.`device_id`, `t18`.`context_id`, `t18`.`stream_id`
      ORDER BY `t18`.`at_ns` ASC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS `depth`
  FROM (
    SELECT
      `t17`.`run`,
      `t17`.`rank`,
      `t17`.`step`,
      `t17`.`device_id`,
      `t17`.`context_id`,
      `t17`.`stream_id`,
      `t17`.`at_ns`,
      SUM(`t17`.`change`) AS `change`
    FROM (
      SELECT
        *
      FROM (
        SELECT
          `t14`.`run`,
          `t14`.`rank`,
          `t14`.`step`,
          `t14`.`device_id`,
          `t14`.`context_id`,
          `t14`.`stream_id`,
          LEAST(`t14`.`call_ns`, `t14`.`start_ns`) AS `at_ns`,
          1 AS `change`
        FROM `t13` AS `t14`
      ) AS `t16`
      UNION ALL
      SELECT
        *
      FROM (
        SELECT
          `t14`.`run`,
          `t14`.`rank`,
          `t14`.`step`,
          `t14`.`device_id`,
          `t14`.`context_id`,
          `t14`.`stream_id`,
          `t14`.`start_ns` AS `at_ns`,
          -1 AS `change`
        FROM `t13` AS `t14`
      ) AS `t15`
    ) AS `t17`
    GROUP BY
      1,
      2,
      3,
      4,
      5,
      6,
      7
  ) AS `t18`
) AS `t19`
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6
