echo "a short run"
echo RES:done
