"""What listers and readers of listed kinds say: values, and what each of them is. Of any thread."""
