SELECT
  "t20"."run",
  "t20"."rank",
  "t20"."step",
  "t20"."start_ns" AS "start",
  "t20"."start_ns" + "t20"."duration_ns" AS "end",
  "t20"."path" AS "text",
  "t20"."textId",
  (
    COALESCE("t20"."process_of_thread", "t20"."process_of_step", 0) * 16777216
  ) + "t20"."thread_id" AS "globalTid"
FROM (
  SELECT
    "t3"."run",
    "t3"."rank",
    "t3"."step",
    "t3"."id",
    "t3"."start_ns",
    "t3"."duration_ns",
    "t3"."external_id",
    "t3"."name",
    "t3"."thread_id",
    "t3"."depth",
    "t3"."domain_name",
    "t3"."category_name",
    "t3"."color",
    "t3"."payload",
    "t3"."op_sequence",
    "t3"."shapes",
    "t3"."parent_id",
    "t3"."path",
    "t3"."details",
    "t3"."is_in_step",
    "t19"."textId",
    "t15"."process_of_thread",
    "t16"."process_of_step"
  FROM "annotations" AS "t3"
  INNER JOIN (
    SELECT
      "t17"."id" AS "textId",
      "t17"."value" AS "of_textId"
    FROM (
      SELECT
        ROW_NUMBER() OVER (
          ORDER BY "t12"."value" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) - 1 AS "id",
        "t12"."value"
      FROM (
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              "t2"."name" AS "value"
            FROM "kernels" AS "t2"
          ) AS "t6"
          UNION
          SELECT
            *
          FROM (
            SELECT
              "t2"."demangled_name" AS "value"
            FROM "kernels" AS "t2"
          ) AS "t7"
        ) AS "t11"
        UNION
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              "t1"."name" AS "value"
            FROM "api_calls" AS "t1"
          ) AS "t5"
          UNION
          SELECT
            *
          FROM (
            SELECT
              "t0"."path" AS "value"
            FROM "annotations" AS "t0"
          ) AS "t4"
        ) AS "t10"
      ) AS "t12"
    ) AS "t17"
  ) AS "t19"
    ON "t3"."path" = "t19"."of_textId"
  LEFT OUTER JOIN (
    SELECT
      "t8"."run" AS "of_run",
      "t8"."rank" AS "of_rank",
      "t8"."step" AS "of_step",
      "t8"."thread_id" AS "of_thread_id",
      "t8"."process_of_thread"
    FROM (
      SELECT
        "t1"."run",
        "t1"."rank",
        "t1"."step",
        "t1"."thread_id",
        MAX("t1"."process_id") AS "process_of_thread"
      FROM "api_calls" AS "t1"
      GROUP BY
        1,
        2,
        3,
        4
    ) AS "t8"
  ) AS "t15"
    ON "t3"."run" = "t15"."of_run"
    AND "t3"."rank" = "t15"."of_rank"
    AND "t3"."step" = "t15"."of_step"
    AND "t3"."thread_id" = "t15"."of_thread_id"
  LEFT OUTER JOIN (
    SELECT
      "t9"."run" AS "of_run",
      "t9"."rank" AS "of_rank",
      "t9"."step" AS "of_step",
      "t9"."process_of_step"
    FROM (
      SELECT
        "t1"."run",
        "t1"."rank",
        "t1"."step",
        MAX("t1"."process_id") AS "process_of_step"
      FROM "api_calls" AS "t1"
      GROUP BY
        1,
        2,
        3
    ) AS "t9"
  ) AS "t16"
    ON "t3"."run" = "t16"."of_run"
    AND "t3"."rank" = "t16"."of_rank"
    AND "t3"."step" = "t16"."of_step"
) AS "t20"
