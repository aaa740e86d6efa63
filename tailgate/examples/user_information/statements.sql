-- One row for every user, kept up to date from four change topics.
CREATE SOURCE users (id bigint, username text, name text, description text, joined_at timestamptz) FROM KAFKA BROKER 'kafka:9092' TOPIC 'users' KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE tweets (id bigint, user_id bigint, text text) FROM KAFKA BROKER 'kafka:9092' TOPIC 'tweets' KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE follows (id bigint, follower_id bigint, followee_id bigint) FROM KAFKA BROKER 'kafka:9092' TOPIC 'follows' KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE likes (id bigint, user_id bigint, tweet_id bigint) FROM KAFKA BROKER 'kafka:9092' TOPIC 'likes' KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT;

CREATE MATERIALIZED VIEW user_information AS
SELECT u.*, coalesce(t.n, 0) AS tweet_count, coalesce(f.n, 0) AS following_count, coalesce(g.n, 0) AS follower_count, coalesce(l.n, 0) AS like_count
FROM users u
LEFT JOIN (SELECT user_id, count(*) AS n FROM tweets GROUP BY 1) t ON t.user_id = u.id
LEFT JOIN (SELECT follower_id, count(*) AS n FROM follows GROUP BY 1) f ON f.follower_id = u.id
LEFT JOIN (SELECT followee_id, count(*) AS n FROM follows GROUP BY 1) g ON g.followee_id = u.id
LEFT JOIN (SELECT user_id, count(*) AS n FROM likes GROUP BY 1) l ON l.user_id = u.id;
