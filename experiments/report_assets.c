/* report_assets.c - report.css and report.js inside the program, so that it needs no file at run time. They are files
 * of their own because a style sheet in C string literals can be neither read nor checked. The paths are relative to
 * the repository, where make runs the compiler; the Makefile knows the dependency. */
#include "experiments/report.h"

__asm__(".section .rodata\n"
        ".global ls_report_css\n"
        "ls_report_css:\n"
        ".incbin \"experiments/report.css\"\n"
        ".byte 0\n"
        ".global ls_report_js\n"
        "ls_report_js:\n"
        ".incbin \"experiments/report.js\"\n"
        ".byte 0\n"
        ".previous\n");
