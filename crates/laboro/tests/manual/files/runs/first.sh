echo first
echo RES: 0.93
