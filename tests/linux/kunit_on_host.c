// SPDX-License-Identifier: GPL-2.0
/* Runs each of `cases`, of the file that includes this one, and writes its outcome and name. */
int main(void)
{
	for (struct kunit_case *c = cases; c->run; c++) {
		struct kunit test = { false };

		if (!setjmp(end_of_test))
			c->run(&test);
		printf("%s %s\n", test.failed ? "failed" : "passed", c->name);
	}
	return 0;
}
