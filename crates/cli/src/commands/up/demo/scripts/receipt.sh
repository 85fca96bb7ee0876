#!/bin/sh
# Prints a receipt. Each line of the input is an item and a count.
total=0
while read -r item count; do
    price=$(sh price.sh "$item" "$count") || exit 1
    unit=$(sh price.sh "$item" 1)
    discount=$((unit * count - price))
    total=$((total + price))
    if [ "$discount" -gt 0 ]; then
        echo "$count x $item: $price (discount $discount)"
    else
        echo "$count x $item: $price"
    fi
done
echo "total: $total"
