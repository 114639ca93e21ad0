/* main.c - the entry of the program `lakestream`; everything else stands in command.c and the cmd_*.c files. */
#include "experiments/command.h"

int main(int count, char **words) { return ls_program(count, words); }
