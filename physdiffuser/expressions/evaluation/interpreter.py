"""The loop that runs flat programs of operators, as LLVM code.

`source()` is one module in LLVM's text form, compiled in memory by `compiled.py`.
Nothing in it depends on a formula: formulas are data (`programs.py`). So it is compiled once, in a fraction
of a second, and only when there is enough to evaluate.
"""

from __future__ import annotations

from physdiffuser.expressions.evaluation.kernels import (
    BINARY,
    BLOCK,
    CODES,
    COLUMN,
    LANES,
    MASK,
    MAX_STACK,
    NUMBER,
    VECTOR,
    loop,
)


def _case(name: str, code: int) -> str:
    """Pop the arguments off the stack of pointers, push the buffer with the result."""
    if name in BINARY:
        return f"""case{code}:
  %down{code} = sub i64 %top, 1
  %under{code} = sub i64 %top, 2
  %pa{code} = getelementptr ptr, ptr %stack, i64 %under{code}
  %pb{code} = getelementptr ptr, ptr %stack, i64 %down{code}
  %a{code} = load ptr, ptr %pa{code}
  %b{code} = load ptr, ptr %pb{code}
  %o{code} = mul i64 %under{code}, {BLOCK}
  %out{code} = getelementptr double, ptr %scratch, i64 %o{code}
  %f{code} = call i64 @{name}(ptr %a{code}, ptr %b{code}, ptr %out{code}, i64 %vectors)
  store ptr %out{code}, ptr %pa{code}
  br label %done
"""
    return f"""case{code}:
  %down{code} = sub i64 %top, 1
  %pa{code} = getelementptr ptr, ptr %stack, i64 %down{code}
  %a{code} = load ptr, ptr %pa{code}
  %o{code} = mul i64 %down{code}, {BLOCK}
  %out{code} = getelementptr double, ptr %scratch, i64 %o{code}
  %f{code} = call i64 @{name}(ptr %a{code}, ptr %out{code}, i64 %vectors)
  store ptr %out{code}, ptr %pa{code}
  br label %done
"""


def _interpreter() -> str:
    """`run(programs, ends, targets, count, columns, stride, rows, scratch, values, flags)`.

    Longer than 60 lines: the blocks of one loop in LLVM's intermediate representation, which name each other.

    Formula after formula, block after block. A value's place in `scratch` is its depth on the stack, so an
    operator may overwrite its first argument. Columns are used where they lie.
    """
    codes = sorted(CODES.items(), key=lambda item: item[1])
    targets = "\n    ".join(
        f"i64 {code}, label %case{code}" for code in (COLUMN, NUMBER, *(c for _, c in codes))
    )
    cases = "\n".join(_case(name, code) for name, code in codes)
    flags = ", ".join(
        [f"[ 0, %case{COLUMN} ]", "[ 0, %filled ]", *(f"[ %f{code}, %case{code} ]" for _, code in codes)]
    )
    tops = ", ".join(
        [f"[ %up, %case{COLUMN} ]", "[ %upn, %filled ]"]
        + [f"[ {'%down' + str(code) if name in BINARY else '%top'}, %case{code} ]" for name, code in codes]
    )
    lanes = "\n".join(
        f"  %splat{lane + 1} = insertelement {VECTOR} {'poison' if lane == 0 else f'%splat{lane}'}, "
        f"double %value, i32 {lane}"
        for lane in range(LANES)
    )
    return f"""define void @run(ptr %programs, ptr %ends, ptr %targets, i64 %count, ptr %columns,
                 i64 %stride, i64 %rows, ptr %scratch, ptr %values, ptr %flags) #0 {{
entry:
  %stack = alloca ptr, i64 {MAX_STACK}
  br label %formula
formula:
  %e = phi i64 [ 0, %entry ], [ %e1, %formula_done ]
  %start = phi i64 [ 0, %entry ], [ %end, %formula_done ]
  %pend = getelementptr i64, ptr %ends, i64 %e
  %end = load i64, ptr %pend
  %ptarget = getelementptr i64, ptr %targets, i64 %e
  %target = load i64, ptr %ptarget
  %row_start = mul i64 %target, %rows
  %row = getelementptr double, ptr %values, i64 %row_start
  br label %block
block:
  %low = phi i64 [ 0, %formula ], [ %low1, %block_done ]
  %flag0 = phi i64 [ 0, %formula ], [ %flag2, %block_done ]
  %left = sub i64 %rows, %low
  %short = icmp ult i64 %left, {BLOCK}
  %here = select i1 %short, i64 %left, i64 {BLOCK}
  %padded = add i64 %here, {LANES - 1}
  %vectors = udiv i64 %padded, {LANES}
  br label %step
step:
  %ip = phi i64 [ %start, %block ], [ %ip1, %done ]
  %top = phi i64 [ 0, %block ], [ %top1, %done ]
  %flag1 = phi i64 [ %flag0, %block ], [ %flag2, %done ]
  %at = mul i64 %ip, 2
  %pcode = getelementptr i64, ptr %programs, i64 %at
  %code = load i64, ptr %pcode, align 1
  %parg = getelementptr i64, ptr %pcode, i64 1
  switch i64 %code, label %unknown [
    {targets}
  ]
unknown:
  unreachable
case{COLUMN}:
  %index = load i64, ptr %parg, align 1
  %first = mul i64 %index, %stride
  %place = add i64 %first, %low
  %column = getelementptr double, ptr %columns, i64 %place
  %pcolumn = getelementptr ptr, ptr %stack, i64 %top
  store ptr %column, ptr %pcolumn
  %up = add i64 %top, 1
  br label %done
case{NUMBER}:
  %value = load double, ptr %parg, align 1
{lanes}
  %on = mul i64 %top, {BLOCK}
  %outn = getelementptr double, ptr %scratch, i64 %on
  %pn = getelementptr ptr, ptr %stack, i64 %top
  store ptr %outn, ptr %pn
  %upn = add i64 %top, 1
  br label %fill
fill:
  %k = phi i64 [ 0, %case{NUMBER} ], [ %k1, %fill ]
  %pk = getelementptr {VECTOR}, ptr %outn, i64 %k
  store {VECTOR} %splat{LANES}, ptr %pk, align 8
  %k1 = add i64 %k, 1
  %morek = icmp ult i64 %k1, %vectors
  br i1 %morek, label %fill, label %filled
filled:
  br label %done
{cases}
done:
  %top1 = phi i64 {tops}
  %newflag = phi i64 {flags}
  %flag2 = or i64 %flag1, %newflag
  %ip1 = add i64 %ip, 1
  %on_program = icmp ult i64 %ip1, %end
  br i1 %on_program, label %step, label %copy
copy:
  %root = load ptr, ptr %stack
  %to = getelementptr double, ptr %row, i64 %low
  %whole_vectors = udiv i64 %here, {LANES}
  %copied = mul i64 %whole_vectors, {LANES}
  %any_vectors = icmp ugt i64 %whole_vectors, 0
  br i1 %any_vectors, label %moving, label %rest
moving:
  %m = phi i64 [ 0, %copy ], [ %m1, %moving ]
  %from_m = getelementptr {VECTOR}, ptr %root, i64 %m
  %to_m = getelementptr {VECTOR}, ptr %to, i64 %m
  %eight = load {VECTOR}, ptr %from_m, align 8
  store {VECTOR} %eight, ptr %to_m, align 8
  %m1 = add i64 %m, 1
  %more_m = icmp ult i64 %m1, %whole_vectors
  br i1 %more_m, label %moving, label %rest
rest:
  %any_rest = icmp ult i64 %copied, %here
  br i1 %any_rest, label %copying, label %block_done
copying:
  %c = phi i64 [ %copied, %rest ], [ %c1, %copying ]
  %from_c = getelementptr double, ptr %root, i64 %c
  %to_c = getelementptr double, ptr %to, i64 %c
  %one = load double, ptr %from_c
  store double %one, ptr %to_c
  %c1 = add i64 %c, 1
  %morec = icmp ult i64 %c1, %here
  br i1 %morec, label %copying, label %block_done
block_done:
  %low1 = add i64 %low, {BLOCK}
  %more_rows = icmp ult i64 %low1, %rows
  br i1 %more_rows, label %block, label %formula_done
formula_done:
  %pflag = getelementptr i64, ptr %flags, i64 %e
  store i64 %flag2, ptr %pflag
  %e1 = add i64 %e, 1
  %more_formulas = icmp ult i64 %e1, %count
  br i1 %more_formulas, label %formula, label %exit
exit:
  ret void
}}
"""


def source() -> str:
    """The whole module."""
    intrinsics = "\n".join(
        [f"declare {VECTOR} @llvm.{name}.v{LANES}f64({VECTOR})" for name in ("sqrt", "fabs")]
        + [
            f"declare {VECTOR} @llvm.fmuladd.v{LANES}f64({VECTOR}, {VECTOR}, {VECTOR})",
            f"declare i1 @llvm.vector.reduce.or.v{LANES}i1({MASK})",
        ]
    )
    attributes = 'attributes #0 = { nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" }'
    loops = "\n".join(loop(name) for name in CODES)
    return "\n".join([intrinsics, loops, _interpreter(), attributes])
