% The Octave runner: a process that a worker keeps, and that takes one call after the other.
%
% Started by a worker as `octave-cli -qf laboro_serve.m`. What it says and hears is in spec/runner.md. A payload is Octave
% code. Each call evaluates it in a workspace of its own, in which there are `value` (text), `index` and `name`; what it
% leaves in `result` is the result: text and uint8 as they are, anything else as JSON. Globals, persistent variables and
% functions that the code defines stay from call to call.

1; % A script, not the file of a function.

function laboro_serve ()
  more off;
  calls = fopen (getenv ("LABORO_CALLS"), "r");
  answers = fopen (getenv ("LABORO_ANSWERS"), "w");
  if (calls < 0 || answers < 0)
    fprintf (stderr, "laboro_serve.m is started by a worker: LABORO_CALLS and LABORO_ANSWERS are not set\n");
    exit (2);
  endif
  unsetenv ("LABORO_CALLS");
  unsetenv ("LABORO_ANSWERS");
  % 0: no call waits in the pipe, so the worker reads what one printed before it takes the answer.
  laboro_say (answers, 1, [laboro_n32(1), laboro_n32(0), uint8(["octave " version()])]);
  code = "";
  while (true)
    [kind, body] = laboro_hear (calls);
    switch (kind)
      case 0
        return;
      case 1
        code = char (body);
      case 2
        laboro_call (answers, code, body);
    endswitch
  endwhile
endfunction

function laboro_call (answers, code, body)
  number = body(1:8);
  index = laboro_number (body(17:20));
  at = 32 + laboro_number (body(29:32));
  name = char (body(33:at));
  value = char (body(at+1:end));
  setenv ("LABORO_TASK", name);
  setenv ("LABORO_JOB", num2str (laboro_number (body(9:12))));
  setenv ("LABORO_INDEX", num2str (index));
  setenv ("LABORO_ATTEMPT", num2str (laboro_number (body(21:24))));
  try
    result = laboro_bytes (laboro_eval (code, value, index, name));
    if (numel (result) > 1048576)
      error ("the result has %d bytes; at most 1048576 are taken back: write it to a file", numel (result));
    endif
    kind = 2;
    rest = result;
  catch failure
    kind = 3;
    fprintf (stderr, "error: %s\n", failure.message);
    for frame = failure.stack'
      fprintf (stderr, "  at %s:%d\n", frame.name, frame.line);
    endfor
    message = uint8 (failure.message)(1:min (end, 4096));
    rest = [laboro_n32(1), laboro_n32(numel (message)), message];
  end_try_catch
  fflush (stdout);
  fflush (stderr);
  laboro_say (answers, kind, [number, rest]);
endfunction

% Nothing but what a call may use is in this workspace.
function result = laboro_eval (laboro_code, value, index, name)
  result = [];
  eval (laboro_code);
endfunction

function bytes = laboro_bytes (result)
  if (isempty (result) && ! ischar (result))
    bytes = zeros (1, 0, "uint8");
  elseif (ischar (result) || isa (result, "uint8"))
    bytes = uint8 (result(:)');
  else
    bytes = uint8 (jsonencode (result));
  endif
endfunction

function [kind, body] = laboro_hear (calls)
  [kind, body] = deal (0, zeros (1, 0, "uint8"));
  head = fread (calls, 4, "uint8=>uint8")';
  if (numel (head) < 4)
    return;
  endif
  frame = fread (calls, laboro_number (head), "uint8=>uint8")';
  if (numel (frame) == laboro_number (head))
    [kind, body] = deal (double (frame(1)), frame(2:end));
  endif
endfunction

function laboro_say (answers, kind, body)
  frame = [laboro_n32(1 + numel (body)), uint8(kind), body];
  if (fwrite (answers, frame, "uint8") < numel (frame) || fflush (answers) != 0)
    exit (1);
  endif
endfunction

function bytes = laboro_n32 (number)
  bytes = uint8 (mod (floor (number ./ [1, 256, 65536, 16777216]), 256));
endfunction

function number = laboro_number (bytes)
  number = double (bytes(:)') * [1; 256; 65536; 16777216];
endfunction

laboro_serve ();
