sleep 0.2
echo "a longer run"
echo RES:done
