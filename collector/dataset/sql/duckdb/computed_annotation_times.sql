WITH "t1" AS (
  SELECT
    *
  FROM "annotations" AS "t0"
  WHERE
    "t0"."is_in_step"
)
SELECT
  "t4"."run",
  "t4"."rank",
  "t4"."step",
  "t4"."name",
  "t4"."count",
  "t4"."total_ns",
  "t4"."min_ns",
  "t4"."max_ns",
  "t7"."median_ns"
FROM (
  SELECT
    "t2"."run",
    "t2"."rank",
    "t2"."step",
    "t2"."name",
    COUNT(*) AS "count",
    SUM("t2"."duration_ns") AS "total_ns",
    MIN("t2"."duration_ns") AS "min_ns",
    MAX("t2"."duration_ns") AS "max_ns"
  FROM "t1" AS "t2"
  GROUP BY
    1,
    2,
    3,
    4
) AS "t4"
INNER JOIN (
  SELECT
    "t5"."median_ns",
    "t5"."run" AS "of_run",
    "t5"."rank" AS "of_rank",
    "t5"."step" AS "of_step",
    "t5"."name" AS "of_name"
  FROM (
    SELECT
      "t2"."run",
      "t2"."rank",
      "t2"."step",
      "t2"."name",
      "t2"."duration_ns" AS "median_ns",
      ROW_NUMBER() OVER (
        PARTITION BY "t2"."run", "t2"."rank", "t2"."step", "t2"."name"
        ORDER BY "t2"."duration_ns" ASC, "t2"."id" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) - 1 AS "place",
      COUNT(*) OVER (
        PARTITION BY "t2"."run", "t2"."rank", "t2"."step", "t2"."name"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "number"
    FROM "t1" AS "t2"
  ) AS "t5"
  WHERE
    (
      (
        "t5"."place" * 2
      ) = (
        "t5"."number" - 1
      )
    )
    OR (
      (
        "t5"."place" * 2
      ) = (
        "t5"."number" - 2
      )
    )
) AS "t7"
  ON "t4"."run" = "t7"."of_run"
  AND "t4"."rank" = "t7"."of_rank"
  AND "t4"."step" = "t7"."of_step"
  AND "t4"."name" = "t7"."of_name"
