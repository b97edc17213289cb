WITH `t15` AS (
  SELECT
    `t14`.`run`,
    `t14`.`rank`,
    `t14`.`step`,
    `t14`.`device_id`,
    `t14`.`context_id`,
    `t14`.`stream_id`,
    `t14`.`correlation_id`,
    `t14`.`start_ns`,
    `t14`.`duration_ns`,
    `t14`.`class`,
    `t14`.`end_ns`,
    `t9`.`of_run`,
    `t9`.`of_rank`,
    `t9`.`of_step`,
    `t9`.`first_ns`,
    `t9`.`last_ns`
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
      `t12`.`start_ns` + `t12`.`duration_ns` AS `end_ns`
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
      ) AS `t10`
    ) AS `t12`
  ) AS `t14`
  INNER JOIN (
    SELECT
      `t0`.`run` AS `of_run`,
      `t0`.`rank` AS `of_rank`,
      `t0`.`step` AS `of_step`,
      `t0`.`start_ns` AS `first_ns`,
      `t0`.`end_ns` AS `last_ns`
    FROM `steps` AS `t0`
  ) AS `t9`
    ON `t14`.`run` = `t9`.`of_run`
    AND `t14`.`rank` = `t9`.`of_rank`
    AND `t14`.`step` = `t9`.`of_step`
)
SELECT
  `t24`.`run`,
  `t24`.`rank`,
  `t24`.`step`,
  `t24`.`device_id`,
  `t24`.`busy_ns`,
  `t24`.`compute_ns`,
  `t24`.`communication_ns`,
  `t24`.`copy_ns`,
  `t24`.`memset_ns`,
  `t24`.`overlap_ns`,
  `t24`.`exposed_communication_ns`,
  `t24`.`exposed_copy_ns`,
  `t24`.`exposed_memset_ns`,
  `t24`.`max_concurrency`,
  `t24`.`window_ns`,
  `t24`.`window_ns` - `t24`.`busy_ns` AS `idle_ns`
FROM (
  SELECT
    `t23`.`run`,
    `t23`.`rank`,
    `t23`.`step`,
    `t23`.`device_id`,
    `t23`.`busy_ns`,
    `t23`.`compute_ns`,
    `t23`.`communication_ns`,
    `t23`.`copy_ns`,
    `t23`.`memset_ns`,
    `t23`.`overlap_ns`,
    `t23`.`exposed_communication_ns`,
    `t23`.`exposed_copy_ns`,
    `t23`.`exposed_memset_ns`,
    `t23`.`max_concurrency`,
    `t11`.`window_ns`
  FROM (
    SELECT
      `t21`.`run`,
      `t21`.`rank`,
      `t21`.`step`,
      `t21`.`device_id`,
      SUM(IF(`t21`.`running` > 0, `t21`.`length_ns`, 0)) AS `busy_ns`,
      SUM(IF(`t21`.`compute` > 0, `t21`.`length_ns`, 0)) AS `compute_ns`,
      SUM(IF(`t21`.`communication` > 0, `t21`.`length_ns`, 0)) AS `communication_ns`,
      SUM(IF(`t21`.`copy` > 0, `t21`.`length_ns`, 0)) AS `copy_ns`,
      SUM(IF(`t21`.`memset` > 0, `t21`.`length_ns`, 0)) AS `memset_ns`,
      SUM(
        IF((
          `t21`.`compute` > 0
        ) AND (
          `t21`.`communication` > 0
        ), `t21`.`length_ns`, 0)
      ) AS `overlap_ns`,
      SUM(
        IF(
          (
            `t21`.`communication` > 0
          ) AND NOT (
            `t21`.`compute` > 0
          ),
          `t21`.`length_ns`,
          0
        )
      ) AS `exposed_communication_ns`,
      SUM(
        IF(
          (
            `t21`.`copy` > 0
          )
          AND NOT (
            `t21`.`compute` > 0
          )
          AND NOT (
            `t21`.`communication` > 0
          ),
          `t21`.`length_ns`,
          0
        )
      ) AS `exposed_copy_ns`,
      SUM(
        IF(
          (
            `t21`.`memset` > 0
          )
          AND NOT (
            `t21`.`compute` > 0
          )
          AND NOT (
            `t21`.`communication` > 0
          )
          AND NOT (
            `t21`.`copy` > 0
          ),
          `t21`.`length_ns`,
          0
        )
      ) AS `exposed_memset_ns`,
      MAX(`t21`.`running`) AS `max_concurrency`
    FROM (
      SELECT
        `t20`.`run`,
        `t20`.`rank`,
        `t20`.`step`,
        `t20`.`device_id`,
        `t20`.`length_ns`,
        `t20`.`compute`,
        `t20`.`communication`,
        `t20`.`copy`,
        `t20`.`memset`,
        IF(
          `t20`.`length_ns` > 0,
          `t20`.`compute` + `t20`.`communication` + `t20`.`copy` + `t20`.`memset`,
          0
        ) AS `running`
      FROM (
        SELECT
          `t19`.`run`,
          `t19`.`rank`,
          `t19`.`step`,
          `t19`.`device_id`,
          COALESCE(
            LEAD(`t19`.`at_ns`) OVER (
              PARTITION BY `t19`.`run`, `t19`.`rank`, `t19`.`step`, `t19`.`device_id`
              ORDER BY `t19`.`at_ns` ASC NULLS LAST
            ),
            `t19`.`at_ns`
          ) - `t19`.`at_ns` AS `length_ns`,
          SUM(`t19`.`compute`) OVER (
            PARTITION BY `t19`.`run`, `t19`.`rank`, `t19`.`step`, `t19`.`device_id`
            ORDER BY `t19`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `compute`,
          SUM(`t19`.`communication`) OVER (
            PARTITION BY `t19`.`run`, `t19`.`rank`, `t19`.`step`, `t19`.`device_id`
            ORDER BY `t19`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `communication`,
          SUM(`t19`.`copy`) OVER (
            PARTITION BY `t19`.`run`, `t19`.`rank`, `t19`.`step`, `t19`.`device_id`
            ORDER BY `t19`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `copy`,
          SUM(`t19`.`memset`) OVER (
            PARTITION BY `t19`.`run`, `t19`.`rank`, `t19`.`step`, `t19`.`device_id`
            ORDER BY `t19`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `memset`
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t16`.`run`,
              `t16`.`rank`,
              `t16`.`step`,
              `t16`.`device_id`,
              GREATEST(`t16`.`start_ns`, `t16`.`first_ns`) AS `at_ns`,
              IF(`t16`.`class` = 'compute', 1, 0) AS `compute`,
              IF(`t16`.`class` = 'communication', 1, 0) AS `communication`,
              IF(`t16`.`class` = 'copy', 1, 0) AS `copy`,
              IF(`t16`.`class` = 'memset', 1, 0) AS `memset`
            FROM `t15` AS `t16`
            WHERE
              LEAST(`t16`.`end_ns`, `t16`.`last_ns`) >= GREATEST(`t16`.`start_ns`, `t16`.`first_ns`)
          ) AS `t17`
          UNION ALL
          SELECT
            *
          FROM (
            SELECT
              `t16`.`run`,
              `t16`.`rank`,
              `t16`.`step`,
              `t16`.`device_id`,
              LEAST(`t16`.`end_ns`, `t16`.`last_ns`) AS `at_ns`,
              IF(`t16`.`class` = 'compute', -1, 0) AS `compute`,
              IF(`t16`.`class` = 'communication', -1, 0) AS `communication`,
              IF(`t16`.`class` = 'copy', -1, 0) AS `copy`,
              IF(`t16`.`class` = 'memset', -1, 0) AS `memset`
            FROM `t15` AS `t16`
            WHERE
              LEAST(`t16`.`end_ns`, `t16`.`last_ns`) >= GREATEST(`t16`.`start_ns`, `t16`.`first_ns`)
          ) AS `t18`
        ) AS `t19`
      ) AS `t20`
    ) AS `t21`
    GROUP BY
      1,
      2,
      3,
      4
  ) AS `t23`
  INNER JOIN (
    SELECT
      `t0`.`run` AS `of_run`,
      `t0`.`rank` AS `of_rank`,
      `t0`.`step` AS `of_step`,
      `t0`.`end_ns` - `t0`.`start_ns` AS `window_ns`
    FROM `steps` AS `t0`
  ) AS `t11`
    ON `t23`.`run` = `t11`.`of_run`
    AND `t23`.`rank` = `t11`.`of_rank`
    AND `t23`.`step` = `t11`.`of_step`
) AS `t24`
