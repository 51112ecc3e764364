// SPDX-License-Identifier: GPL-2.0-or-later
// A float: an iteration ends when its error is below a tolerance that some models have too small.
#include "serve.h"

#include <cmath>
#include <vector>

static std::vector<double> start_values()
{
	std::vector<double> grid(200, 0.0);

	grid.front() = 1.0;
	grid.back() = 3.0;
	return grid;
}

static double relax(std::vector<double> &grid)
{
	double worst = 0;

	for (size_t i = 1; i + 1 < grid.size(); i++) {
		double made = 0.5 * (grid[i - 1] + grid[i + 1]);

		worst = std::fmax(worst, std::fabs(made - grid[i]));
		grid[i] = made;
	}
	return worst;
}

static __attribute__((noinline)) int solve(std::vector<double> &grid, double tolerance)
{
	int step = 0;

	for (double error = 1; error > tolerance && step < 60000; step++)
		error = relax(grid);
	return step;
}

static size_t answer(const char *path, char *body)
{
	std::vector<double> grid = start_values();
	double tolerance = strncmp(path, "/fine", 5) ? 2e-3 : 1e-7;

	return (size_t)sprintf(body, "%d steps\n", solve(grid, tolerance));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
