SELECT
  "t2"."run",
  "t2"."rank",
  "t2"."step",
  "t2"."api",
  "t2"."domain",
  COUNT(*) AS "count",
  SUM(CASE WHEN "t2"."return_value" <> 0 THEN 1 ELSE 0 END) AS "errors",
  SUM("t2"."duration_ns") AS "total_ns",
  MIN("t2"."duration_ns") AS "min_ns",
  MAX("t2"."duration_ns") AS "max_ns",
  MAX(
    CASE
      WHEN (
        (
          "t2"."place" * 2
        ) = (
          "t2"."number" - 1
        )
      )
      OR (
        (
          "t2"."place" * 2
        ) = (
          "t2"."number" - 2
        )
      )
      THEN "t2"."duration_ns"
      ELSE NULL
    END
  ) AS "median_ns"
FROM (
  SELECT
    "t2"."id",
    "t2"."start_ns",
    "t2"."duration_ns",
    "t2"."callback_id",
    "t2"."name",
    "t2"."process_id",
    "t2"."thread_id",
    "t2"."correlation_id",
    "t2"."return_value",
    "t2"."is_outer",
    "t2"."op",
    "t2"."place",
    "t2"."number",
    "t2"."run",
    "t2"."rank",
    "t2"."step",
    "t2"."api",
    "t2"."domain"
  FROM (
    SELECT
      "t1"."run",
      "t1"."rank",
      "t1"."step",
      "t1"."id",
      "t1"."start_ns",
      "t1"."duration_ns",
      "t1"."domain",
      "t1"."callback_id",
      "t1"."name",
      "t1"."process_id",
      "t1"."thread_id",
      "t1"."correlation_id",
      "t1"."return_value",
      "t1"."api",
      "t1"."is_outer",
      "t1"."op",
      ROW_NUMBER() OVER (
        PARTITION BY "t1"."run", "t1"."rank", "t1"."step", "t1"."api", "t1"."domain"
        ORDER BY "t1"."duration_ns" ASC, "t1"."id" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) - 1 AS "place",
      COUNT(*) OVER (
        PARTITION BY "t1"."run", "t1"."rank", "t1"."step", "t1"."api", "t1"."domain"
        ORDER BY "t1"."duration_ns" ASC, "t1"."id" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "number"
    FROM (
      SELECT
        "t0"."run",
        "t0"."rank",
        "t0"."step",
        "t0"."id",
        "t0"."start_ns",
        "t0"."duration_ns",
        CASE WHEN "t0"."domain" = 2 THEN 'runtime' ELSE 'driver' END AS "domain",
        "t0"."callback_id",
        "t0"."name",
        "t0"."process_id",
        "t0"."thread_id",
        "t0"."correlation_id",
        "t0"."return_value",
        "t0"."api",
        "t0"."is_outer",
        "t0"."op"
      FROM "api_calls" AS "t0"
    ) AS "t1"
  ) AS "t2"
) AS t2
GROUP BY
  "t2"."run",
  "t2"."rank",
  "t2"."step",
  "t2"."api",
  "t2"."domain"
