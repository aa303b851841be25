# The manual of "rdma mpa" for the program rdma-mpa
/^\.B rdma$/s/rdma/rdma\\-mpa/
/^\.B mpa$/d
s/rdma (-[a-z -]*)mpa /rdma\\-mpa \1/
s/rdma mpa/rdma\\-mpa/
s/rdma (\\?-b)/rdma\\-mpa \1/
s/^(\\fB\\-t\\fR\[\\fIimestamp\\fR\]) \}$/\1 | \
\\fB\\-f\\fR[\\fIorce\\fR] |\
\\fB\\-b\\fR[\\fIatch\\fR] \\fIFILE\\fR }/
/^\.SH "?SEE ALSO/i\
.SH NOTES\
.B rdma\\-mpa \\-b\
takes lines\
.I COMMAND ARGUMENT ...\
with or without\
.B mpa\
before them, from a file or from standard input\
.RB ( \\- );\
.B \\-f\
goes on behind a line that is wrong.\
.B rdma\\-mpa \\-V\
says which of the modules are loaded, and of which version.\
.PP\
This program comes with the package iw-mpa-tools. iproute2's own\
.BR rdma (8)\
stays as it is; the one with the command\
.B mpa\
is /usr/lib/iw-mpa/rdma.
