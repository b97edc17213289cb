WITH "t2" AS (
  SELECT
    "t1"."run",
    "t1"."rank",
    "t1"."step",
    "t1"."name",
    "t1"."start_ns",
    "t1"."duration_ns",
    "t1"."start_ns" + "t1"."duration_ns" AS "end_ns",
    ROW_NUMBER() OVER (
      PARTITION BY "t1"."run", "t1"."rank", "t1"."step", "t1"."name"
      ORDER BY "t1"."start_ns" ASC, "t1"."id" ASC
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) - 1 AS "ordinal"
  FROM (
    SELECT
      *
    FROM "kernels" AS "t0"
    WHERE
      "t0"."class" = 'communication'
  ) AS "t1"
), "t11" AS (
  SELECT
    "t4"."run",
    "t4"."rank",
    "t4"."step",
    "t4"."name",
    "t4"."start_ns",
    "t4"."duration_ns",
    "t4"."end_ns",
    "t4"."ordinal",
    "t7"."lowest",
    "t10"."reference_end_ns",
    "t10"."of_run",
    "t10"."of_step",
    "t10"."of_name",
    "t10"."of_ordinal"
  FROM "t2" AS "t4"
  INNER JOIN (
    SELECT
      "t5"."run" AS "of_run",
      "t5"."lowest"
    FROM (
      SELECT
        "t3"."run",
        MIN("t3"."rank") AS "lowest"
      FROM (
        SELECT
          "t3"."rank",
          "t3"."step",
          "t3"."name",
          "t3"."start_ns",
          "t3"."duration_ns",
          "t3"."end_ns",
          "t3"."ordinal",
          "t3"."run"
        FROM "t2" AS "t3"
      ) AS t3
      GROUP BY
        "t3"."run"
    ) AS "t5"
  ) AS "t7"
    ON "t4"."run" = "t7"."of_run"
  INNER JOIN (
    SELECT
      "t8"."end_ns" AS "reference_end_ns",
      "t8"."run" AS "of_run",
      "t8"."step" AS "of_step",
      "t8"."name" AS "of_name",
      "t8"."ordinal" AS "of_ordinal"
    FROM (
      SELECT
        "t4"."run",
        "t4"."rank",
        "t4"."step",
        "t4"."name",
        "t4"."start_ns",
        "t4"."duration_ns",
        "t4"."end_ns",
        "t4"."ordinal",
        "t7"."lowest"
      FROM "t2" AS "t4"
      INNER JOIN (
        SELECT
          "t5"."run" AS "of_run",
          "t5"."lowest"
        FROM (
          SELECT
            "t3"."run",
            MIN("t3"."rank") AS "lowest"
          FROM (
            SELECT
              "t3"."rank",
              "t3"."step",
              "t3"."name",
              "t3"."start_ns",
              "t3"."duration_ns",
              "t3"."end_ns",
              "t3"."ordinal",
              "t3"."run"
            FROM "t2" AS "t3"
          ) AS t3
          GROUP BY
            "t3"."run"
        ) AS "t5"
      ) AS "t7"
        ON "t4"."run" = "t7"."of_run"
    ) AS "t8"
    WHERE
      "t8"."rank" = "t8"."lowest"
  ) AS "t10"
    ON "t4"."run" = "t10"."of_run"
    AND "t4"."step" = "t10"."of_step"
    AND "t4"."name" = "t10"."of_name"
    AND "t4"."ordinal" = "t10"."of_ordinal"
), "t19" AS (
  SELECT
    "t14"."run",
    "t14"."rank",
    "t18"."median_ns",
    ABS("t14"."apart_ns" - "t18"."median_ns") AS "away_ns",
    "t14"."ordinal" AS "id"
  FROM (
    SELECT
      "t12"."run",
      "t12"."rank",
      "t12"."end_ns" - "t12"."reference_end_ns" AS "apart_ns",
      "t12"."ordinal"
    FROM "t11" AS "t12"
  ) AS "t14"
  INNER JOIN (
    SELECT
      "t16"."median_ns",
      "t16"."run" AS "of_run",
      "t16"."rank" AS "of_rank"
    FROM (
      SELECT
        "t15"."run",
        "t15"."rank",
        "t15"."apart_ns" AS "median_ns",
        ROW_NUMBER() OVER (
          PARTITION BY "t15"."run", "t15"."rank"
          ORDER BY "t15"."apart_ns" ASC, "t15"."id" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) - 1 AS "place",
        COUNT(*) OVER (
          PARTITION BY "t15"."run", "t15"."rank"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS "number"
      FROM (
        SELECT
          "t12"."run",
          "t12"."rank",
          "t12"."end_ns" - "t12"."reference_end_ns" AS "apart_ns",
          (
            "t12"."step" * 0
          ) + "t12"."ordinal" AS "id"
        FROM "t11" AS "t12"
      ) AS "t15"
    ) AS "t16"
    WHERE
      (
        (
          "t16"."place" * 2
        ) = (
          "t16"."number" - 1
        )
      )
      OR (
        (
          "t16"."place" * 2
        ) = (
          "t16"."number" - 2
        )
      )
  ) AS "t18"
    ON "t14"."run" = "t18"."of_run" AND "t14"."rank" = "t18"."of_rank"
)
SELECT
  "t39"."run",
  "t39"."step",
  "t39"."name",
  "t39"."ordinal",
  "t39"."straggler",
  "t39"."ranks",
  "t39"."cost_ns",
  "t39"."transfer_ns",
  "t39"."last_ns" - "t39"."first_ns" AS "skew_ns"
FROM (
  SELECT
    "t38"."run",
    "t38"."step",
    "t38"."name",
    "t38"."ordinal",
    "t38"."straggler",
    "t38"."ranks",
    "t38"."first_ns",
    "t38"."last_ns",
    "t38"."transfer_ns",
    SUM(
      CASE
        WHEN (
          "t38"."last_ns" - "t38"."start_ns"
        ) > (
          "t38"."error_ns" + "t38"."straggler_error_ns"
        )
        THEN "t38"."last_ns" - "t38"."start_ns"
        ELSE 0
      END
    ) AS "cost_ns"
  FROM (
    SELECT
      "t38"."rank",
      "t38"."duration_ns",
      "t38"."start_ns",
      "t38"."error_ns",
      "t38"."straggler_error_ns",
      "t38"."its_run",
      "t38"."its_step",
      "t38"."its_name",
      "t38"."its_ordinal",
      "t38"."run",
      "t38"."step",
      "t38"."name",
      "t38"."ordinal",
      "t38"."straggler",
      "t38"."ranks",
      "t38"."first_ns",
      "t38"."last_ns",
      "t38"."transfer_ns"
    FROM (
      SELECT
        "t4"."run",
        "t4"."step",
        "t4"."name",
        "t4"."ordinal",
        "t4"."rank",
        "t4"."duration_ns",
        "t4"."start_ns" - "t28"."clock_offset_ns" AS "start_ns",
        "t28"."clock_error_ns" AS "error_ns",
        "t32"."ranks",
        "t32"."first_ns",
        "t32"."last_ns",
        "t32"."transfer_ns",
        "t37"."straggler",
        "t37"."straggler_error_ns",
        "t37"."its_run",
        "t37"."its_step",
        "t37"."its_name",
        "t37"."its_ordinal"
      FROM "t2" AS "t4"
      INNER JOIN (
        SELECT
          CASE
            WHEN (
              "t26"."collectives" >= 3
            ) AND (
              ABS("t26"."median_ns") > "t26"."most_ns"
            )
            THEN "t26"."median_ns"
            ELSE 0
          END AS "clock_offset_ns",
          CASE
            WHEN (
              "t26"."collectives" >= 3
            ) AND (
              ABS("t26"."median_ns") > "t26"."most_ns"
            )
            THEN "t26"."error_ns"
            ELSE 0
          END AS "clock_error_ns",
          "t26"."run" AS "of_run",
          "t26"."rank" AS "of_rank"
        FROM (
          SELECT
            "t22"."run",
            "t22"."rank",
            "t22"."median_ns",
            "t22"."collectives",
            "t22"."most_ns",
            "t25"."error_ns"
          FROM (
            SELECT
              "t20"."run",
              "t20"."rank",
              "t20"."median_ns",
              COUNT(*) AS "collectives",
              MAX("t20"."away_ns") AS "most_ns"
            FROM (
              SELECT
                "t20"."away_ns",
                "t20"."id",
                "t20"."run",
                "t20"."rank",
                "t20"."median_ns"
              FROM "t19" AS "t20"
            ) AS t20
            GROUP BY
              "t20"."run",
              "t20"."rank",
              "t20"."median_ns"
          ) AS "t22"
          INNER JOIN (
            SELECT
              "t23"."median_ns" AS "error_ns",
              "t23"."run" AS "of_run",
              "t23"."rank" AS "of_rank"
            FROM (
              SELECT
                "t20"."run",
                "t20"."rank",
                "t20"."away_ns" AS "median_ns",
                ROW_NUMBER() OVER (
                  PARTITION BY "t20"."run", "t20"."rank"
                  ORDER BY "t20"."away_ns" ASC, "t20"."id" ASC
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) - 1 AS "place",
                COUNT(*) OVER (
                  PARTITION BY "t20"."run", "t20"."rank"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) AS "number"
              FROM "t19" AS "t20"
            ) AS "t23"
            WHERE
              (
                (
                  "t23"."place" * 2
                ) = (
                  "t23"."number" - 1
                )
              )
              OR (
                (
                  "t23"."place" * 2
                ) = (
                  "t23"."number" - 2
                )
              )
          ) AS "t25"
            ON "t22"."run" = "t25"."of_run" AND "t22"."rank" = "t25"."of_rank"
        ) AS "t26"
      ) AS "t28"
        ON "t4"."run" = "t28"."of_run" AND "t4"."rank" = "t28"."of_rank"
      INNER JOIN (
        SELECT
          "t30"."run" AS "of_run",
          "t30"."step" AS "of_step",
          "t30"."name" AS "of_name",
          "t30"."ordinal" AS "of_ordinal",
          "t30"."ranks",
          "t30"."first_ns",
          "t30"."last_ns",
          "t30"."transfer_ns"
        FROM (
          SELECT
            "t29"."run",
            "t29"."step",
            "t29"."name",
            "t29"."ordinal",
            COUNT("t29"."rank") AS "ranks",
            MIN("t29"."start_ns") AS "first_ns",
            MAX("t29"."start_ns") AS "last_ns",
            MIN("t29"."duration_ns") AS "transfer_ns"
          FROM (
            SELECT
              "t29"."rank",
              "t29"."duration_ns",
              "t29"."start_ns",
              "t29"."error_ns",
              "t29"."run",
              "t29"."step",
              "t29"."name",
              "t29"."ordinal"
            FROM (
              SELECT
                "t4"."run",
                "t4"."step",
                "t4"."name",
                "t4"."ordinal",
                "t4"."rank",
                "t4"."duration_ns",
                "t4"."start_ns" - "t28"."clock_offset_ns" AS "start_ns",
                "t28"."clock_error_ns" AS "error_ns"
              FROM "t2" AS "t4"
              INNER JOIN (
                SELECT
                  CASE
                    WHEN (
                      "t26"."collectives" >= 3
                    ) AND (
                      ABS("t26"."median_ns") > "t26"."most_ns"
                    )
                    THEN "t26"."median_ns"
                    ELSE 0
                  END AS "clock_offset_ns",
                  CASE
                    WHEN (
                      "t26"."collectives" >= 3
                    ) AND (
                      ABS("t26"."median_ns") > "t26"."most_ns"
                    )
                    THEN "t26"."error_ns"
                    ELSE 0
                  END AS "clock_error_ns",
                  "t26"."run" AS "of_run",
                  "t26"."rank" AS "of_rank"
                FROM (
                  SELECT
                    "t22"."run",
                    "t22"."rank",
                    "t22"."median_ns",
                    "t22"."collectives",
                    "t22"."most_ns",
                    "t25"."error_ns"
                  FROM (
                    SELECT
                      "t20"."run",
                      "t20"."rank",
                      "t20"."median_ns",
                      COUNT(*) AS "collectives",
                      MAX("t20"."away_ns") AS "most_ns"
                    FROM (
                      SELECT
                        "t20"."away_ns",
                        "t20"."id",
                        "t20"."run",
                        "t20"."rank",
                        "t20"."median_ns"
                      FROM "t19" AS "t20"
                    ) AS t20
                    GROUP BY
                      "t20"."run",
                      "t20"."rank",
                      "t20"."median_ns"
                  ) AS "t22"
                  INNER JOIN (
                    SELECT
                      "t23"."median_ns" AS "error_ns",
                      "t23"."run" AS "of_run",
                      "t23"."rank" AS "of_rank"
                    FROM (
                      SELECT
                        "t20"."run",
                        "t20"."rank",
                        "t20"."away_ns" AS "median_ns",
                        ROW_NUMBER() OVER (
                          PARTITION BY "t20"."run", "t20"."rank"
                          ORDER BY "t20"."away_ns" ASC, "t20"."id" ASC
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - 1 AS "place",
                        COUNT(*) OVER (
                          PARTITION BY "t20"."run", "t20"."rank"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) AS "number"
                      FROM "t19" AS "t20"
                    ) AS "t23"
                    WHERE
                      (
                        (
                          "t23"."place" * 2
                        ) = (
                          "t23"."number" - 1
                        )
                      )
                      OR (
                        (
                          "t23"."place" * 2
                        ) = (
                          "t23"."number" - 2
                        )
                      )
                  ) AS "t25"
                    ON "t22"."run" = "t25"."of_run" AND "t22"."rank" = "t25"."of_rank"
                ) AS "t26"
              ) AS "t28"
                ON "t4"."run" = "t28"."of_run" AND "t4"."rank" = "t28"."of_rank"
            ) AS "t29"
          ) AS t29
          GROUP BY
            "t29"."run",
            "t29"."step",
            "t29"."name",
            "t29"."ordinal"
        ) AS "t30"
        WHERE
          "t30"."ranks" > 1
      ) AS "t32"
        ON "t4"."run" = "t32"."of_run"
        AND "t4"."step" = "t32"."of_step"
        AND "t4"."name" = "t32"."of_name"
        AND "t4"."ordinal" = "t32"."of_ordinal"
      INNER JOIN (
        SELECT
          "t35"."rank" AS "straggler",
          "t35"."error_ns" AS "straggler_error_ns",
          "t35"."run" AS "its_run",
          "t35"."step" AS "its_step",
          "t35"."name" AS "its_name",
          "t35"."ordinal" AS "its_ordinal"
        FROM (
          SELECT
            "t34"."run",
            "t34"."step",
            "t34"."name",
            "t34"."ordinal",
            "t34"."rank",
            "t34"."duration_ns",
            "t34"."start_ns",
            "t34"."error_ns",
            "t34"."of_run",
            "t34"."of_step",
            "t34"."of_name",
            "t34"."of_ordinal",
            "t34"."ranks",
            "t34"."first_ns",
            "t34"."last_ns",
            "t34"."transfer_ns",
            ROW_NUMBER() OVER (
              PARTITION BY "t34"."run", "t34"."step", "t34"."name", "t34"."ordinal"
              ORDER BY "t34"."rank" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) - 1 AS "place"
          FROM (
            SELECT
              *
            FROM (
              SELECT
                "t4"."run",
                "t4"."step",
                "t4"."name",
                "t4"."ordinal",
                "t4"."rank",
                "t4"."duration_ns",
                "t4"."start_ns" - "t28"."clock_offset_ns" AS "start_ns",
                "t28"."clock_error_ns" AS "error_ns",
                "t32"."of_run",
                "t32"."of_step",
                "t32"."of_name",
                "t32"."of_ordinal",
                "t32"."ranks",
                "t32"."first_ns",
                "t32"."last_ns",
                "t32"."transfer_ns"
              FROM "t2" AS "t4"
              INNER JOIN (
                SELECT
                  CASE
                    WHEN (
                      "t26"."collectives" >= 3
                    ) AND (
                      ABS("t26"."median_ns") > "t26"."most_ns"
                    )
                    THEN "t26"."median_ns"
                    ELSE 0
                  END AS "clock_offset_ns",
                  CASE
                    WHEN (
                      "t26"."collectives" >= 3
                    ) AND (
                      ABS("t26"."median_ns") > "t26"."most_ns"
                    )
                    THEN "t26"."error_ns"
                    ELSE 0
                  END AS "clock_error_ns",
                  "t26"."run" AS "of_run",
                  "t26"."rank" AS "of_rank"
                FROM (
                  SELECT
                    "t22"."run",
                    "t22"."rank",
                    "t22"."median_ns",
                    "t22"."collectives",
                    "t22"."most_ns",
                    "t25"."error_ns"
                  FROM (
                    SELECT
                      "t20"."run",
                      "t20"."rank",
                      "t20"."median_ns",
                      COUNT(*) AS "collectives",
                      MAX("t20"."away_ns") AS "most_ns"
                    FROM (
                      SELECT
                        "t20"."away_ns",
                        "t20"."id",
                        "t20"."run",
                        "t20"."rank",
                        "t20"."median_ns"
                      FROM "t19" AS "t20"
                    ) AS t20
                    GROUP BY
                      "t20"."run",
                      "t20"."rank",
                      "t20"."median_ns"
                  ) AS "t22"
                  INNER JOIN (
                    SELECT
                      "t23"."median_ns" AS "error_ns",
                      "t23"."run" AS "of_run",
                      "t23"."rank" AS "of_rank"
                    FROM (
                      SELECT
                        "t20"."run",
                        "t20"."rank",
                        "t20"."away_ns" AS "median_ns",
                        ROW_NUMBER() OVER (
                          PARTITION BY "t20"."run", "t20"."rank"
                          ORDER BY "t20"."away_ns" ASC, "t20"."id" ASC
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - 1 AS "place",
                        COUNT(*) OVER (
                          PARTITION BY "t20"."run", "t20"."rank"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) AS "number"
                      FROM "t19" AS "t20"
                    ) AS "t23"
                    WHERE
                      (
                        (
                          "t23"."place" * 2
                        ) = (
                          "t23"."number" - 1
                        )
                      )
                      OR (
                        (
                          "t23"."place" * 2
                        ) = (
                          "t23"."number" - 2
                        )
                      )
                  ) AS "t25"
                    ON "t22"."run" = "t25"."of_run" AND "t22"."rank" = "t25"."of_rank"
                ) AS "t26"
              ) AS "t28"
                ON "t4"."run" = "t28"."of_run" AND "t4"."rank" = "t28"."of_rank"
              INNER JOIN (
                SELECT
                  "t30"."run" AS "of_run",
                  "t30"."step" AS "of_step",
                  "t30"."name" AS "of_name",
                  "t30"."ordinal" AS "of_ordinal",
                  "t30"."ranks",
                  "t30"."first_ns",
                  "t30"."last_ns",
                  "t30"."transfer_ns"
                FROM (
                  SELECT
                    "t29"."run",
                    "t29"."step",
                    "t29"."name",
                    "t29"."ordinal",
                    COUNT("t29"."rank") AS "ranks",
                    MIN("t29"."start_ns") AS "first_ns",
                    MAX("t29"."start_ns") AS "last_ns",
                    MIN("t29"."duration_ns") AS "transfer_ns"
                  FROM (
                    SELECT
                      "t29"."rank",
                      "t29"."duration_ns",
                      "t29"."start_ns",
                      "t29"."error_ns",
                      "t29"."run",
                      "t29"."step",
                      "t29"."name",
                      "t29"."ordinal"
                    FROM (
                      SELECT
                        "t4"."run",
                        "t4"."step",
                        "t4"."name",
                        "t4"."ordinal",
                        "t4"."rank",
                        "t4"."duration_ns",
                        "t4"."start_ns" - "t28"."clock_offset_ns" AS "start_ns",
                        "t28"."clock_error_ns" AS "error_ns"
                      FROM "t2" AS "t4"
                      INNER JOIN (
                        SELECT
                          CASE
                            WHEN (
                              "t26"."collectives" >= 3
                            ) AND (
                              ABS("t26"."median_ns") > "t26"."most_ns"
                            )
                            THEN "t26"."median_ns"
                            ELSE 0
                          END AS "clock_offset_ns",
                          CASE
                            WHEN (
                              "t26"."collectives" >= 3
                            ) AND (
                              ABS("t26"."median_ns") > "t26"."most_ns"
                            )
                            THEN "t26"."error_ns"
                            ELSE 0
                          END AS "clock_error_ns",
                          "t26"."run" AS "of_run",
                          "t26"."rank" AS "of_rank"
                        FROM (
                          SELECT
                            "t22"."run",
                            "t22"."rank",
                            "t22"."median_ns",
                            "t22"."collectives",
                            "t22"."most_ns",
                            "t25"."error_ns"
                          FROM (
                            SELECT
                              "t20"."run",
                              "t20"."rank",
                              "t20"."median_ns",
                              COUNT(*) AS "collectives",
                              MAX("t20"."away_ns") AS "most_ns"
                            FROM (
                              SELECT
                                "t20"."away_ns",
                                "t20"."id",
                                "t20"."run",
                                "t20"."rank",
                                "t20"."median_ns"
                              FROM "t19" AS "t20"
                            ) AS t20
                            GROUP BY
                              "t20"."run",
                              "t20"."rank",
                              "t20"."median_ns"
                          ) AS "t22"
                          INNER JOIN (
                            SELECT
                              "t23"."median_ns" AS "error_ns",
                              "t23"."run" AS "of_run",
                              "t23"."rank" AS "of_rank"
                            FROM (
                              SELECT
                                "t20"."run",
                                "t20"."rank",
                                "t20"."away_ns" AS "median_ns",
                                ROW_NUMBER() OVER (
                                  PARTITION BY "t20"."run", "t20"."rank"
                                  ORDER BY "t20"."away_ns" ASC, "t20"."id" ASC
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                ) - 1 AS "place",
                                COUNT(*) OVER (
                                  PARTITION BY "t20"."run", "t20"."rank"
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                ) AS "number"
                              FROM "t19" AS "t20"
                            ) AS "t23"
                            WHERE
                              (
                                (
                                  "t23"."place" * 2
                                ) = (
                                  "t23"."number" - 1
                                )
                              )
                              OR (
                                (
                                  "t23"."place" * 2
                                ) = (
                                  "t23"."number" - 2
                                )
                              )
                          ) AS "t25"
                            ON "t22"."run" = "t25"."of_run" AND "t22"."rank" = "t25"."of_rank"
                        ) AS "t26"
                      ) AS "t28"
                        ON "t4"."run" = "t28"."of_run" AND "t4"."rank" = "t28"."of_rank"
                    ) AS "t29"
                  ) AS t29
                  GROUP BY
                    "t29"."run",
                    "t29"."step",
                    "t29"."name",
                    "t29"."ordinal"
                ) AS "t30"
                WHERE
                  "t30"."ranks" > 1
              ) AS "t32"
                ON "t4"."run" = "t32"."of_run"
                AND "t4"."step" = "t32"."of_step"
                AND "t4"."name" = "t32"."of_name"
                AND "t4"."ordinal" = "t32"."of_ordinal"
            ) AS "t33"
            WHERE
              "t33"."start_ns" = "t33"."last_ns"
          ) AS "t34"
        ) AS "t35"
        WHERE
          "t35"."place" = 0
      ) AS "t37"
        ON "t4"."run" = "t37"."its_run"
        AND "t4"."step" = "t37"."its_step"
        AND "t4"."name" = "t37"."its_name"
        AND "t4"."ordinal" = "t37"."its_ordinal"
    ) AS "t38"
  ) AS t38
  GROUP BY
    "t38"."run",
    "t38"."step",
    "t38"."name",
    "t38"."ordinal",
    "t38"."straggler",
    "t38"."ranks",
    "t38"."first_ns",
    "t38"."last_ns",
    "t38"."transfer_ns"
) AS "t39"
