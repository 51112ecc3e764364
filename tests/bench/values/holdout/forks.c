// SPDX-License-Identifier: GPL-2.0-or-later
/* In a child process: for each row of a table the widths of all rows before are measured again. */
#include "serve.h"

static int cell_width(int row, int column)
{
	unsigned x = (unsigned)row * 31 + (unsigned)column;

	return (int)(x * 2654435761u >> 27);
}

static int lay_out(int rows, int columns)
{
	int width = 0;

	for (int row = 0; row < rows; row++) {
		for (int before = 0; before <= row; before++) {
			int sum = 0;

			for (int column = 0; column < columns; column++)
				sum += cell_width(before, column);
			if (sum > width)
				width = sum;
		}
	}
	return width;
}

static size_t answer(const char *path, char *body)
{
	int rows = strncmp(path, "/year", 5) ? 30 : 700;

	return (size_t)sprintf(body, "%d\n", lay_out(rows, 8));
}

int main(int argc, char **argv)
{
	serve_forks = 1;
	return serve(argc, argv, answer);
}
