WITH `t18` AS (
  SELECT
    `t17`.`run`,
    `t17`.`rank`,
    `t17`.`step`,
    `t17`.`device_id`,
    `t17`.`context_id`,
    `t17`.`stream_id`,
    `t17`.`correlation_id`,
    `t17`.`start_ns`,
    `t17`.`duration_ns`,
    `t17`.`class`,
    `t17`.`end_ns`,
    `t10`.`of_run`,
    `t10`.`of_rank`,
    `t10`.`of_step`,
    `t10`.`first_ns`,
    `t10`.`last_ns`
  FROM (
    SELECT
      `t15`.`run`,
      `t15`.`rank`,
      `t15`.`step`,
      `t15`.`device_id`,
      `t15`.`context_id`,
      `t15`.`stream_id`,
      `t15`.`correlation_id`,
      `t15`.`start_ns`,
      `t15`.`duration_ns`,
      `t15`.`class`,
      `t15`.`start_ns` + `t15`.`duration_ns` AS `end_ns`
    FROM (
      SELECT
        *
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
            `t1`.`class`
          FROM `kernels` AS `t1`
        ) AS `t6`
        UNION ALL
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
            'copy' AS `class`
          FROM `copies` AS `t2`
        ) AS `t7`
      ) AS `t11`
      UNION ALL
      SELECT
        *
      FROM (
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
            'memset' AS `class`
          FROM `memsets` AS `t3`
        ) AS `t8`
        UNION ALL
        SELECT
          *
        FROM (
          SELECT
            `t4`.`run`,
            `t4`.`rank`,
            `t4`.`step`,
            `t4`.`device_id`,
            `t4`.`context_id`,
            `t4`.`stream_id`,
            `t4`.`correlation_id`,
            `t4`.`start_ns`,
            `t4`.`duration_ns`,
            'graph' AS `class`
          FROM `graph_launches` AS `t4`
          WHERE
            `t4`.`graph_degree` = 4
        ) AS `t12`
      ) AS `t14`
    ) AS `t15`
  ) AS `t17`
  INNER JOIN (
    SELECT
      `t0`.`run` AS `of_run`,
      `t0`.`rank` AS `of_rank`,
      `t0`.`step` AS `of_step`,
      `t0`.`start_ns` AS `first_ns`,
      `t0`.`end_ns` AS `last_ns`
    FROM `steps` AS `t0`
  ) AS `t10`
    ON `t17`.`run` = `t10`.`of_run`
    AND `t17`.`rank` = `t10`.`of_rank`
    AND `t17`.`step` = `t10`.`of_step`
)
SELECT
  `t32`.`run`,
  `t32`.`rank`,
  `t32`.`step`,
  `t32`.`device_id`,
  `t32`.`running`,
  SUM(`t32`.`length_ns`) AS `duration_ns`
FROM (
  SELECT
    *
  FROM (
    SELECT
      `t28`.`run`,
      `t28`.`rank`,
      `t28`.`step`,
      `t28`.`device_id`,
      `t28`.`running`,
      `t28`.`length_ns`
    FROM (
      SELECT
        `t25`.`run`,
        `t25`.`rank`,
        `t25`.`step`,
        `t25`.`device_id`,
        `t25`.`length_ns`,
        `t25`.`compute`,
        `t25`.`communication`,
        `t25`.`copy`,
        `t25`.`memset`,
        `t25`.`graph`,
        IF(
          `t25`.`length_ns` > 0,
          `t25`.`compute` + `t25`.`communication` + `t25`.`copy` + `t25`.`memset` + `t25`.`graph`,
          0
        ) AS `running`
      FROM (
        SELECT
          `t23`.`run`,
          `t23`.`rank`,
          `t23`.`step`,
          `t23`.`device_id`,
          COALESCE(
            LEAD(`t23`.`at_ns`) OVER (
              PARTITION BY `t23`.`run`, `t23`.`rank`, `t23`.`step`, `t23`.`device_id`
              ORDER BY `t23`.`at_ns` ASC NULLS LAST
            ),
            `t23`.`at_ns`
          ) - `t23`.`at_ns` AS `length_ns`,
          SUM(`t23`.`compute`) OVER (
            PARTITION BY `t23`.`run`, `t23`.`rank`, `t23`.`step`, `t23`.`device_id`
            ORDER BY `t23`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `compute`,
          SUM(`t23`.`communication`) OVER (
            PARTITION BY `t23`.`run`, `t23`.`rank`, `t23`.`step`, `t23`.`device_id`
            ORDER BY `t23`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `communication`,
          SUM(`t23`.`copy`) OVER (
            PARTITION BY `t23`.`run`, `t23`.`rank`, `t23`.`step`, `t23`.`device_id`
            ORDER BY `t23`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `copy`,
          SUM(`t23`.`memset`) OVER (
            PARTITION BY `t23`.`run`, `t23`.`rank`, `t23`.`step`, `t23`.`device_id`
            ORDER BY `t23`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `memset`,
          SUM(`t23`.`graph`) OVER (
            PARTITION BY `t23`.`run`, `t23`.`rank`, `t23`.`step`, `t23`.`device_id`
            ORDER BY `t23`.`at_ns` ASC NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) AS `graph`
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t19`.`run`,
              `t19`.`rank`,
              `t19`.`step`,
              `t19`.`device_id`,
              GREATEST(`t19`.`start_ns`, `t19`.`first_ns`) AS `at_ns`,
              IF(`t19`.`class` = 'compute', 1, 0) AS `compute`,
              IF(`t19`.`class` = 'communication', 1, 0) AS `communication`,
              IF(`t19`.`class` = 'copy', 1, 0) AS `copy`,
              IF(`t19`.`class` = 'memset', 1, 0) AS `memset`,
              IF(`t19`.`class` = 'graph', 1, 0) AS `graph`
            FROM `t18` AS `t19`
            WHERE
              LEAST(`t19`.`end_ns`, `t19`.`last_ns`) >= GREATEST(`t19`.`start_ns`, `t19`.`first_ns`)
          ) AS `t21`
          UNION ALL
          SELECT
            *
          FROM (
            SELECT
              `t19`.`run`,
              `t19`.`rank`,
              `t19`.`step`,
              `t19`.`device_id`,
              LEAST(`t19`.`end_ns`, `t19`.`last_ns`) AS `at_ns`,
              IF(`t19`.`class` = 'compute', -1, 0) AS `compute`,
              IF(`t19`.`class` = 'communication', -1, 0) AS `communication`,
              IF(`t19`.`class` = 'copy', -1, 0) AS `copy`,
              IF(`t19`.`class` = 'memset', -1, 0) AS `memset`,
              IF(`t19`.`class` = 'graph', -1, 0) AS `graph`
            FROM `t18` AS `t19`
            WHERE
              LEAST(`t19`.`end_ns`, `t19`.`last_ns`) >= GREATEST(`t19`.`start_ns`, `t19`.`first_ns`)
          ) AS `t22`
        ) AS `t23`
      ) AS `t25`
    ) AS `t28`
    WHERE
      `t28`.`running` > 0
  ) AS `t30`
  UNION ALL
  SELECT
    *
  FROM (
    SELECT
      `t29`.`run`,
      `t29`.`rank`,
      `t29`.`step`,
      `t29`.`device_id`,
      0 AS `running`,
      `t29`.`window_ns` - `t29`.`busy_ns` AS `length_ns`
    FROM (
      SELECT
        `t27`.`run`,
        `t27`.`rank`,
        `t27`.`step`,
        `t27`.`device_id`,
        `t27`.`busy_ns`,
        `t27`.`activities`,
        `t13`.`window_ns`
      FROM (
        SELECT
          `t24`.`run`,
          `t24`.`rank`,
          `t24`.`step`,
          `t24`.`device_id`,
          SUM(GREATEST(`t24`.`end_ns` - GREATEST(`t24`.`start_ns`, `t24`.`covered_ns`), 0)) AS `busy_ns`,
          COUNT(*) AS `activities`
        FROM (
          SELECT
            `t20`.`run`,
            `t20`.`rank`,
            `t20`.`step`,
            `t20`.`device_id`,
            `t20`.`context_id`,
            `t20`.`stream_id`,
            `t20`.`correlation_id`,
            `t20`.`start_ns`,
            `t20`.`duration_ns`,
            `t20`.`class`,
            `t20`.`end_ns`,
            `t20`.`of_run`,
            `t20`.`of_rank`,
            `t20`.`of_step`,
            `t20`.`first_ns`,
            `t20`.`last_ns`,
            COALESCE(
              MAX(`t20`.`end_ns`) OVER (
                PARTITION BY `t20`.`run`, `t20`.`rank`, `t20`.`step`, `t20`.`device_id`
                ORDER BY `t20`.`start_ns` ASC NULLS LAST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
              ),
              `t20`.`start_ns`
            ) AS `covered_ns`
          FROM (
            SELECT
              `t19`.`run`,
              `t19`.`rank`,
              `t19`.`step`,
              `t19`.`device_id`,
              `t19`.`context_id`,
              `t19`.`stream_id`,
              `t19`.`correlation_id`,
              GREATEST(`t19`.`start_ns`, `t19`.`first_ns`) AS `start_ns`,
              `t19`.`duration_ns`,
              `t19`.`class`,
              LEAST(`t19`.`end_ns`, `t19`.`last_ns`) AS `end_ns`,
              `t19`.`of_run`,
              `t19`.`of_rank`,
              `t19`.`of_step`,
              `t19`.`first_ns`,
              `t19`.`last_ns`
            FROM `t18` AS `t19`
            WHERE
              LEAST(`t19`.`end_ns`, `t19`.`last_ns`) >= GREATEST(`t19`.`start_ns`, `t19`.`first_ns`)
          ) AS `t20`
        ) AS `t24`
        GROUP BY
          1,
          2,
          3,
          4
      ) AS `t27`
      INNER JOIN (
        SELECT
          `t0`.`run` AS `of_run`,
          `t0`.`rank` AS `of_rank`,
          `t0`.`step` AS `of_step`,
          `t0`.`end_ns` - `t0`.`start_ns` AS `window_ns`
        FROM `steps` AS `t0`
      ) AS `t13`
        ON `t27`.`run` = `t13`.`of_run`
        AND `t27`.`rank` = `t13`.`of_rank`
        AND `t27`.`step` = `t13`.`of_step`
    ) AS `t29`
    WHERE
      (
        `t29`.`window_ns` - `t29`.`busy_ns`
      ) > 0
  ) AS `t31`
) AS `t32`
GROUP BY
  1,
  2,
  3,
  4,
  5
