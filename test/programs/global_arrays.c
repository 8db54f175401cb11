/* Global Arrays on whatever one-sided communication MPI has: patches that are put, got and added
 * to, tasks handed out by a shared counter, a product of matrices. Every result is compared with
 * what one process computes.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ga.h>
#include <macdecls.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { side = 120, tasks = 200 };

static int rank, ranks, wrong;

static void check(int right, const char* what) {
  if (right) return;
  ++wrong;
  fprintf(stderr, "rank %d: %s\n", rank, what);
}

static int make(const char* name) {
  int sides[] = {side, side}, chunk[] = {-1, -1};
  const int array = NGA_Create(C_DBL, 2, sides, (char*)name, chunk);
  if (array == 0) GA_Error("no array", 1);
  GA_Zero(array);
  return array;
}

static double at(int row, int column) { return (row * 7 + column * 3) % 11 - 5; }

/* Rows that a rank writes, over the tiles of all others. */
static void fill(int array) {
  static double band[side][side];
  int low[] = {0, 0}, high[] = {0, side - 1}, lead[] = {side};
  low[0] = rank * side / ranks;
  high[0] = (rank + 1) * side / ranks - 1;
  for (int i = low[0]; i <= high[0]; ++i)
    for (int j = 0; j < side; ++j) band[i - low[0]][j] = at(i, j);
  if (high[0] >= low[0]) NGA_Put(array, low, high, band, lead);
  GA_Sync();
}

static void patches(int from, int sums) {
  int one = 1, zero[] = {0};
  const int counter = NGA_Create(C_LONG, 1, &one, "counter", NULL);
  GA_Zero(counter);
  GA_Sync();
  long task;
  static double patch[side][side];
  while ((task = NGA_Read_inc(counter, zero, 1)) < tasks) {
    int low[] = {(int)(task * 37 % 60), (int)(task * 53 % 60)}, high[2], lead[] = {side};
    high[0] = low[0] + (int)(task % 59);
    high[1] = low[1] + (int)(task % 31);
    NGA_Get(from, low, high, patch, lead);
    int right = 1;
    for (int i = low[0]; i <= high[0]; ++i)
      for (int j = low[1]; j <= high[1]; ++j)
        right = right && patch[i - low[0]][j - low[1]] == at(i, j);
    check(right, "a patch is not what was put");
    double twice = 2;
    NGA_Acc(sums, low, high, patch, lead, &twice);
  }
  GA_Sync();
  static double sum[side][side];
  int low[] = {0, 0}, high[] = {side - 1, side - 1}, lead[] = {side};
  NGA_Get(sums, low, high, sum, lead);
  int right = 1;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      double times = 0;
      for (long t = 0; t < tasks; ++t) {
        const int row = (int)(t * 37 % 60), column = (int)(t * 53 % 60);
        times += i >= row && i <= row + t % 59 && j >= column && j <= column + t % 31;
      }
      right = right && sum[i][j] == 2 * times * at(i, j);
    }
  check(right, "the sums are wrong");
  GA_Destroy(counter);
}

static void product(int a, int c) {
  GA_Dgemm('n', 't', side, side, side, 1.0, a, a, 0.0, c);
  static double own[side][side];
  int low[] = {0, 0}, high[] = {side - 1, side - 1}, lead[] = {side};
  NGA_Get(c, low, high, own, lead);
  int right = 1;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      double sum = 0;
      for (int k = 0; k < side; ++k) sum += at(i, k) * at(j, k);
      right = right && fabs(sum - own[i][j]) < 1e-9;
    }
  check(right, "the product is wrong");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  GA_Initialize();
  MA_init(C_DBL, 100000, 100000);
  rank = GA_Nodeid();
  ranks = GA_Nnodes();
  const int a = make("a"), sums = make("sums"), c = make("c");
  fill(a);
  patches(a, sums);
  product(a, c);
  GA_Igop(&wrong, 1, "+");
  if (rank == 0) printf(wrong == 0 ? "all results right\n" : "%d results wrong\n", wrong);
  GA_Destroy(c);
  GA_Destroy(sums);
  GA_Destroy(a);
  GA_Terminate();
  MPI_Finalize();
  return wrong != 0;
}
