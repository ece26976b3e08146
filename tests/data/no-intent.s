// SPDX-License-Identifier: GPL-2.0
// Instructions that read or write and are neither RMW nor load-exclusive: no intent.
ldapr w0, [x1]
ldapr x30, [sp]
ldaprb w0, [x1]
ldaprh w0, [x1]
ldapr x0, [x1], #8
ldapur x0, [x1, #8]
ldapursw x0, [x1, #-8]
ldar x0, [x1]
ldarb w0, [x1]
ldarh w30, [sp]
ldlar x0, [x1]
ldlarb w0, [x1]
stlr x0, [x1]
stllr x0, [x1]
stlur x0, [x1, #8]
stxr w0, x1, [x2]
stlxr w0, w1, [x2]
stxrb w0, w1, [x2]
stlxrh w0, w1, [x2]
stxp w0, x1, x2, [x3]
stlxp w0, w1, w2, [sp]
sttxr w0, x1, [x2]
stltxr w0, x1, [x2]
ld64b x0, [x8]
ldiapp x0, x1, [x2]
ldiapp w0, w1, [x2], #8
stilp x0, x1, [x2]
cpyfp [x0]!, [x1]!, x2!
cpyp [x0]!, [x1]!, x2!
cpyfmwtrn [x0]!, [x1]!, x2!
setp [x0]!, x1!, x2
setgm [x0]!, x1!, x2
gcsstr x0, [x1]
gcssttr x0, [x1]
gcsss1 x0
gcspopm x0
stg x0, [x1]
st2g x0, [x1, #16]
stzg x0, [x1], #16
stz2g x0, [x1, #16]!
stgp x0, x1, [x2]
ldg x0, [x1]
ldgm x0, [x1]
stgm x0, [x1]
prfm pldl1keep, [x0]
prfm pstl1strm, [x0, x1]
prfum pldl1keep, [x0, #-8]
rprfm pldkeep, x1, [x0]
ldr x0, [x1]
ldr w0, [x1, #4]
ldr x0, [x1, x2, lsl #3]
ldr x0, [x1], #8
ldr x0, [x1, #8]!
ldrb w0, [x1]
ldrsh x0, [x1]
ldrsw x0, [x1, w2, sxtw]
ldur x0, [x1, #-8]
ldtr x0, [x1]
ldtrsb w0, [x1]
ldp x0, x1, [x2]
ldnp x0, x1, [x2]
ldpsw x0, x1, [x2]
ldtp x0, x1, [x2]
ldtnp x0, x1, [x2]
ldraa x0, [x1]
ldrab x0, [x1, #8]!
ldr s0, [x1]
ldr q0, [x1, #16]
ldr h0, [x1, x2]
ldur d0, [x1, #-8]
ldp q0, q1, [x2]
ldapur q0, [x1]
ldap1 { v0.d }[0], [x1]
stl1 { v0.d }[0], [x1]
ld1 { v0.16b }, [x1]
ld4r { v0.8h, v1.8h, v2.8h, v3.8h }, [x1]
ld1 { v0.b }[1], [x1], x2
str x0, [x1]
strb w0, [x1, x2]
stp x0, x1, [x2]
sttr x0, [x1]
sttp x0, x1, [x2]
dc zva, x0
dc civac, x0
ic ivau, x0
clrex
