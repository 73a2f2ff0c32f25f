echo second
echo "RES: 0.95"
