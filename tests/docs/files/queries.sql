-- statements
SELECT 1
SELECT count(*) FROM carts
