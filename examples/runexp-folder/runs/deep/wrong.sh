echo "this one did not converge"
echo RES:failed
